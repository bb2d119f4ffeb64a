package placement

import (
	"slices"
	"strings"
)

// gamingLabel marks machines that people play on.
const gamingLabel = "gaming"

// filter is one feasibility check. A static one depends only on what seldom
// changes: a node that it refuses could never take the request, however idle.
type filter struct {
	name   string
	static bool
	fits   func(view) bool
	why    func(view) phrase // asked only when fits says no
}

// filters are all checks, the static ones first: the first refusal is the
// reason that a person reads.
func filters() []filter {
	return slices.Concat(identityFilters(), traitFilters(), totalFilters(), roomFilters())
}

// identityFilters look at the node's name.
func identityFilters() []filter {
	return []filter{
		{"targetNode", true,
			func(v view) bool {
				return v.targetErr == nil && (v.target.Node == "" || v.target.Node == v.n.name)
			},
			func(v view) phrase {
				if v.targetErr != nil {
					return phrase{does, "not fit: " + v.targetErr.Error()}
				}
				return phrase{is, "not the target node " + v.target.Node}
			},
		},
		{"allowedNodes", true,
			func(v view) bool {
				allowed := v.constraints.GetAllowedNodes()
				return len(allowed) == 0 || slices.Contains(allowed, v.n.name)
			},
			func(view) phrase { return phrase{is, "not among the allowed nodes"} },
		},
		{"forbiddenNodes", true,
			func(v view) bool { return !slices.Contains(v.constraints.GetForbiddenNodes(), v.n.name) },
			func(view) phrase { return phrase{is, "forbidden"} },
		},
	}
}

// traitFilters look at what the node says of itself.
func traitFilters() []filter {
	return []filter{
		{"type", true,
			func(v view) bool { return v.hasExecutor(v.taskType) },
			func(v view) phrase { return phrase{does, "not run " + v.taskType + " tasks"} },
		},
		{"requiresExecutors", true,
			func(v view) bool { return len(v.missing(v.constraints.GetRequiresExecutors(), v.hasExecutor)) == 0 },
			func(v view) phrase {
				types := v.missing(v.constraints.GetRequiresExecutors(), v.hasExecutor)
				return phrase{does, "not run " + strings.Join(types, ", ") + " tasks"}
			},
		},
		{"nodeLabels", true,
			func(v view) bool { return len(v.missing(v.constraints.GetNodeLabels(), v.hasLabel)) == 0 },
			func(v view) phrase {
				labels := v.missing(v.constraints.GetNodeLabels(), v.hasLabel)
				return phrase{lacks, noun("label", len(labels)) + strings.Join(labels, ", ")}
			},
		},
		{"anyLabels", true,
			func(v view) bool {
				labels := v.constraints.GetAnyLabels()
				return len(labels) == 0 || slices.ContainsFunc(labels, v.hasLabel)
			},
			func(v view) phrase {
				return phrase{has, "none of the labels " + strings.Join(v.constraints.GetAnyLabels(), ", ")}
			},
		},
		{"avoidGaming", true,
			func(v view) bool { return !v.constraints.GetAvoidGaming() || !v.hasLabel(gamingLabel) },
			func(view) phrase { return phrase{has, "label " + gamingLabel} },
		},
		{"requiresCapabilities", true,
			func(v view) bool { return len(v.missingCapabilities()) == 0 },
			func(v view) phrase { return v.capabilityPhrase() },
		},
		{"numa", true,
			func(v view) bool { return !v.need.numa },
			func(view) phrase { return phrase{reports, "no NUMA nodes"} },
		},
	}
}

// totalFilters look at the size of the node.
func totalFilters() []filter {
	return []filter{
		{"gpus", true,
			func(v view) bool { return len(v.n.snap.GetGpus()) >= v.leastGPUs() && len(v.missingGPUs()) == 0 },
			func(v view) phrase {
				have := len(v.n.snap.GetGpus())
				switch {
				case have == 0:
					return phrase{has, "no GPU"}
				case have < v.leastGPUs():
					return phrase{has, count(have, "GPU") + " of " + number(v.leastGPUs()) + " asked"}
				}
				return phrase{lacks, "GPU " + strings.Join(v.missingGPUs(), ", ")}
			},
		},
		{"cores", true,
			func(v view) bool { return v.need.milliCores <= v.totalMilli() },
			func(v view) phrase {
				return phrase{has, cores(v.totalMilli()) + " of " + thousandths(v.need.milliCores) + " asked"}
			},
		},
		{"memory", true,
			func(v view) bool { return v.leastMemory() <= v.totalMemory() },
			func(v view) phrase {
				return phrase{has, mebibytes(v.totalMemory()) + " of memory, " + number(v.leastMemory()) + " asked"}
			},
		},
		{"disk", true,
			func(v view) bool { return v.constraints.GetMinDiskGb() <= v.n.snap.GetDisk().GetTotalGb() },
			func(v view) phrase {
				return phrase{has, "a disk of " + gibibytes(v.n.snap.GetDisk().GetTotalGb()) + ", " +
					decimal(v.constraints.GetMinDiskGb()) + " asked"}
			},
		},
	}
}

// roomFilters look at what is free now.
func roomFilters() []filter {
	return []filter{
		{"minMemoryMb", false,
			func(v view) bool { return float64(v.constraints.GetMinMemoryMb()) <= v.availableMB() },
			func(v view) phrase {
				return phrase{has, mebibytes(int64(v.availableMB())) + " available of " +
					number(int(v.constraints.GetMinMemoryMb())) + " asked"}
			},
		},
		{"minDiskGb", false,
			func(v view) bool { return v.constraints.GetMinDiskGb() <= v.n.snap.GetDisk().GetAvailableGb() },
			func(v view) phrase {
				return phrase{has, gibibytes(v.n.snap.GetDisk().GetAvailableGb()) + " of disk free of " +
					decimal(v.constraints.GetMinDiskGb()) + " asked"}
			},
		},
		{"slots", false,
			func(v view) bool { return v.slotFree(v.stretch) },
			func(v view) phrase { return phrase{has, "no free slot of " + number(v.n.slots())} },
		},
		{"maxParallelPerNode", false,
			func(v view) bool {
				most := int(v.constraints.GetMaxParallelPerNode())
				return most == 0 || v.n.perRun[v.runID] < most
			},
			func(v view) phrase {
				return phrase{has, count(v.n.perRun[v.runID], "task") + " of this run, the most allowed"}
			},
		},
		{"freeCores", false,
			func(v view) bool { return v.coresFree(v.stretch) },
			func(v view) phrase {
				return phrase{has, cores(max(0, v.totalMilli()-v.usedMilli())) + " free of " +
					thousandths(v.need.milliCores) + " asked"}
			},
		},
		{"freeMemory", false,
			func(v view) bool { return v.need.memoryMB == 0 || v.need.memoryMB <= v.freeMemory() },
			func(v view) phrase {
				return phrase{has, mebibytes(max(0, v.freeMemory())) + " free of " + number(v.need.memoryMB) + " asked"}
			},
		},
		{"freeGpus", false,
			func(v view) bool { return v.need.gpus == 0 || v.need.gpus <= v.freeGPUs() },
			func(v view) phrase {
				return phrase{has, count(max(0, v.freeGPUs()), "GPU") + " free of " + number(v.need.gpus) + " asked"}
			},
		},
	}
}

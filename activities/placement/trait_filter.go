package placement

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// gamingLabel marks machines that people use for gaming.
const gamingLabel = "gaming"

// offlineFilter is the name of the filter that refuses nodes for being offline.
const offlineFilter = v1.NodeOffline

// traitFilters returns the filters for the properties that the node declares.
func traitFilters() []filter {
	return []filter{
		{"type",
			func(v *view) bool { return v.hasExecutor(v.taskType) },
			func(v *view) phrase {
				object := "not run " + v.taskType + " tasks"
				if reason := v.n.snap.GetWithheld()[v.taskType]; reason != "" {
					object += ": " + reason
				}
				return phrase{verb: does, object: object}
			},
		},
		{"requiresExecutors",
			func(v *view) bool { return len(v.missing(v.constraints.GetRequiresExecutors(), v.hasExecutor)) == 0 },
			func(v *view) phrase {
				types := v.missing(v.constraints.GetRequiresExecutors(), v.hasExecutor)
				return phrase{verb: does, object: "not run " + strings.Join(types, ", ") + " tasks"}
			},
		},
		{"nodeLabels",
			func(v *view) bool { return len(v.missing(v.constraints.GetNodeLabels(), v.hasLabel)) == 0 },
			func(v *view) phrase {
				labels := v.missing(v.constraints.GetNodeLabels(), v.hasLabel)
				return phrase{verb: lacks, object: noun("label", len(labels)) + strings.Join(labels, ", ")}
			},
		},
		{"anyLabels",
			func(v *view) bool {
				labels := v.constraints.GetAnyLabels()
				return len(labels) == 0 || slices.ContainsFunc(labels, v.hasLabel)
			},
			func(v *view) phrase {
				return phrase{verb: has, object: "none of the labels " + strings.Join(v.constraints.GetAnyLabels(), ", ")}
			},
		},
		{"avoidGaming",
			func(v *view) bool {
				// A user who is playing now will stop at some point.
				return !v.constraints.GetAvoidGaming() || v.n.snap.GetGaming() || !v.hasLabel(gamingLabel)
			},
			func(*view) phrase { return phrase{verb: has, object: "label " + gamingLabel} },
		},
		{"requiresCapabilities",
			func(v *view) bool { return len(v.missingCapabilities()) == 0 },
			func(v *view) phrase { return v.capabilityPhrase() },
		},
		{"containers",
			func(v *view) bool { return len(v.refusals()) == 0 },
			func(v *view) phrase {
				return phrase{verb: does, object: "not allow " + strings.Join(v.refusals(), ", nor ")}
			},
		},
		{"support",
			func(v *view) bool { return len(v.unsupported()) == 0 },
			func(v *view) phrase {
				return phrase{verb: does, object: "not offer " + strings.Join(v.unsupported(), ", nor ")}
			},
		},
		{"keptFor",
			func(v *view) bool { return len(v.keptFrom()) == 0 },
			func(v *view) phrase {
				return phrase{verb: is, object: "kept for " + strings.Join(v.keptFrom(), ", and for ")}
			},
		},
		{offlineFilter,
			func(v *view) bool { return v.n.state != v1.NodeOffline },
			func(v *view) phrase { return phrase{verb: is, object: v.n.stateObject()} },
		},
	}
}

func (v *view) hasLabel(label string) bool { return slices.Contains(v.n.snap.GetLabels(), label) }

func (v *view) hasExecutor(taskType string) bool {
	return slices.Contains(v.n.snap.GetExecutors(), taskType)
}

// missing returns the wanted items that the node does not have.
func (v *view) missing(wanted []string, has func(string) bool) []string {
	var out []string
	for _, w := range wanted {
		if !has(w) {
			out = append(out, w)
		}
	}
	return out
}

// missingCapabilities returns, in ascending order, the wanted keys that the node lacks or has with
// another value.
func (v *view) missingCapabilities() []string {
	wanted := v.constraints.GetRequiresCapabilities()
	if len(wanted) == 0 {
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if value, ok := v.n.snap.GetCapabilities()[key]; !ok || value != wanted[key] {
			out = append(out, key)
		}
	}
	return out
}

// capabilityPhrase describes the first missing or different capability.
func (v *view) capabilityPhrase() phrase {
	key := v.missingCapabilities()[0]
	value, ok := v.n.snap.GetCapabilities()[key]
	if session, is := v1.SessionOfCapability(key); is && !ok {
		return phrase{verb: does, object: "not have session " + session}
	}
	if cluster, is := v1.ClusterOfCapability(key); is && !ok {
		return phrase{verb: does, object: "not reach cluster " + cluster}
	}
	if key == v1.SharedDirCapability && !ok {
		return phrase{verb: lacks, object: "a shared folder, which the task names as $" + v1.SharedDirVariable + " (--shared-dir of the worker)"}
	}
	if reason := v.n.snap.GetWithheld()[v1.WithheldQEMU]; key == v1.QEMUCapability && !ok && reason != "" {
		return phrase{verb: does, object: "not run virtual machines: " + reason}
	}
	if key == v1.QEMUCapability && !ok {
		return phrase{verb: lacks, object: "QEMU (packages qemu-system-x86 and qemu-utils on Debian)"}
	}
	if !ok {
		return phrase{verb: lacks, object: "capability " + key}
	}
	return phrase{verb: has, object: "capability " + key + "=" + value + " instead of " + v.constraints.GetRequiresCapabilities()[key]}
}

// refusals returns what the request's container needs and the node does not allow.
func (v *view) refusals() []string {
	if v.container == nil {
		return nil
	}
	return policy.Refusals(v.n.snap.GetContainers(), v.container)
}

// unsupported returns what else the request needs and the node does not offer.
func (v *view) unsupported() []string {
	return policy.Unsupported(v.n.snap.GetSupport(), v.needs, v.n.snap.GetContainers().GetCommand())
}

// keptFrom returns what the node is kept for that the request neither asks for nor tolerates. A workspace keeps its node.
func (v *view) keptFrom() []string {
	keptFor := v.n.snap.GetTerms().GetKeptFor()
	if len(keptFor) == 0 || v.workspace != nil {
		return nil
	}
	return policy.KeptFrom(keptFor, v.constraints, v.need.gpus > 0 || v.later.gpus > 0)
}

// missingGPUs returns the requested GPU indices for which the node has no GPU that meets a condition.
func (v *view) missingGPUs(meets func(gpu) bool) []string {
	var out []string
	for _, index := range v.target.GPUIndices {
		if !slices.ContainsFunc(v.n.gpus, func(g gpu) bool { return int(g.index) == index && meets(g) }) {
			out = append(out, strconv.Itoa(index))
		}
	}
	return out
}

// leastMemory returns the memory in MiB that the node must have in total, in use or not.
func (v *view) leastMemory() int64 {
	return max(int64(v.constraints.GetMinMemoryMb()), v.need.memoryMB)
}

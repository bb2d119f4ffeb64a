package placement

import (
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// totalFilters returns the filters for the size of the node.
func totalFilters() []filter {
	return []filter{
		{"gpus",
			func(v *view) bool {
				return v.need.gpus == 0 || v.countGPUs(v.gpuSuits) >= v.need.gpus && len(v.missingGPUs(v.gpuSuits)) == 0
			},
			func(v *view) phrase {
				switch have := v.countGPUs(v.gpuSuits); {
				case len(v.n.gpus) == 0:
					return phrase{verb: has, object: "no GPU", want: v.wantedGPUs(), got: "none"}
				case have == 0:
					return phrase{verb: has, object: "no GPU" + v.gpuKind(), want: v.wantedGPUs(), got: "none" + v.gpuKind()}
				case have < v.need.gpus:
					return phrase{verb: has, object: count(have, "GPU") + v.gpuKind() + " of " + number(v.need.gpus) + " asked",
						want: v.wantedGPUs(), got: number(v.countGPUs(v.gpuFits))}
				}
				return phrase{verb: lacks, object: "GPU " + strings.Join(v.missingGPUs(v.gpuSuits), ", ") + v.gpuKind()}
			},
		},
		{"cores",
			func(v *view) bool { return v.need.milliCores <= v.n.now.milliCores },
			func(v *view) phrase {
				return phrase{verb: has, object: cores(v.n.now.milliCores) + " of " + thousandths(v.need.milliCores) + " asked"}
			},
		},
		{"memory",
			func(v *view) bool { return v.leastMemory() <= v.n.now.memoryMB },
			func(v *view) phrase {
				return phrase{verb: has, object: mebibytes(v.n.now.memoryMB) + " of memory, " + number(v.leastMemory()) + " asked"}
			},
		},
		{"workspaceSize",
			func(v *view) bool { return v.laterLack() == "" },
			func(v *view) phrase {
				return phrase{verb: has, object: v.laterLack() + " that other tasks of the workspace ask"}
			},
		},
		{"disk",
			func(v *view) bool { return v.constraints.GetMinDiskGb() <= v.n.snap.GetDisk().GetTotalGb() },
			func(v *view) phrase {
				return phrase{verb: has, object: "a disk of " + gibibytes(v.n.snap.GetDisk().GetTotalGb()) + ", " +
					decimal(v.constraints.GetMinDiskGb()) + " asked"}
			},
		},
		{"numa",
			func(v *view) bool { return v.need.numa == noNUMA || v.numaLack() == (phrase{}) },
			func(v *view) phrase { return v.numaLack() },
		},
	}
}

// laterLack returns what the node lacks for tasks that must run where this one does, or "".
func (v *view) laterLack() string {
	switch {
	case v.later.gpus > len(v.n.gpus):
		return count(len(v.n.gpus), "GPU") + " of " + number(v.later.gpus)
	case v.later.milliCores > v.n.now.milliCores:
		return cores(v.n.now.milliCores) + " of " + thousandths(v.later.milliCores)
	case v.later.memoryMB > v.n.now.memoryMB:
		return mebibytes(v.n.now.memoryMB) + " of memory, of " + number(v.later.memoryMB)
	}
	return ""
}

// numaLack returns why the node lacks the requested NUMA node, or an empty phrase if that NUMA node
// exists and is large enough. A machine that reports no NUMA nodes is NUMA node 0.
func (v *view) numaLack() phrase {
	if len(v.n.numa) == 0 && v.need.numa == 0 {
		return phrase{}
	}
	if support := v.n.snap.GetSupport(); v.taskType == v1.TypeShell && support != nil && !support.GetNumactl() {
		return phrase{verb: lacks, object: "numactl, which binds shell tasks to NUMA nodes (package numactl)"}
	}
	for _, p := range v.n.numa {
		on := " asked on NUMA node " + number(p.index)
		switch {
		case p.index != v.need.numa:
			continue
		case p.milliCores < v.need.milliCores:
			return phrase{verb: has, object: cores(p.milliCores) + " of " + thousandths(v.need.milliCores) + on}
		case p.memoryMB < v.need.memoryMB:
			return phrase{verb: has, object: mebibytes(p.memoryMB) + " of " + number(v.need.memoryMB) + on}
		}
		return phrase{}
	}
	return phrase{verb: has, object: "no NUMA node " + number(v.need.numa)}
}

package placement

import (
	"slices"
	"strings"
)

// refusedFilter is the name of the filter for what the node has refused since its snapshot.
const refusedFilter = "refused"

// capacityFilters returns the filters for the node's condition and for what is free on it now.
func capacityFilters() []filter {
	return slices.Concat(conditionFilters(), figureFilters(), ledgerFilters())
}

// conditionFilters returns the filters for whether the node accepts tasks at all.
func conditionFilters() []filter {
	return []filter{
		{"state",
			func(v *view) bool { return v.n.now.active },
			func(v *view) phrase { return phrase{verb: is, object: v.n.stateObject()} },
		},
		{"refusal",
			func(v *view) bool { return !v.n.now.refuses },
			func(v *view) phrase { return phrase{verb: is, object: v.n.snap.GetRefusal()} },
		},
		{"benched",
			func(v *view) bool {
				_, benched := v.n.benchedUntil(v.now)
				return !benched
			},
			func(v *view) phrase {
				until, _ := v.n.benchedUntil(v.now)
				return phrase{verb: is, object: "benched until " + until.UTC().Format("15:04:05 UTC") + " after " +
					count(v.n.health.counted, "failure") + " of the node"}
			},
		},
		{refusedFilter,
			func(v *view) bool {
				if len(v.n.refused) == 0 {
					return true
				}
				_, refused := v.n.refused[v.ask]
				return !refused
			},
			func(*view) phrase { return phrase{verb: has, object: "refused it because it had no room"} },
		},
		{"gaming",
			func(v *view) bool {
				return !v.n.now.gaming || !v.constraints.GetAvoidGaming() && v.need.gpus == 0
			},
			func(v *view) phrase {
				if v.constraints.GetAvoidGaming() {
					return phrase{verb: has, object: "a user playing on it"}
				}
				return phrase{verb: has, object: "its GPUs in use for gaming", want: v.wantedGPUs(), got: "0, in use for gaming"}
			},
		},
	}
}

// figureFilters returns the filters for the figures that the node measures.
func figureFilters() []filter {
	return []filter{
		{"minMemoryMb",
			func(v *view) bool { return float64(v.constraints.GetMinMemoryMb()) <= v.n.now.availableMB },
			func(v *view) phrase {
				available, wanted := number(int64(v.n.now.availableMB)), number(int(v.constraints.GetMinMemoryMb()))
				return phrase{verb: has, object: available + " MiB available of " + wanted + " asked",
					want: wanted + " MiB available", got: available}
			},
		},
		{"minDiskGb",
			func(v *view) bool { return v.constraints.GetMinDiskGb() <= v.n.now.diskFreeGB },
			func(v *view) phrase {
				free, wanted := decimal(v.n.now.diskFreeGB), decimal(v.constraints.GetMinDiskGb())
				return phrase{verb: has, object: free + " GiB of disk free of " + wanted + " asked",
					want: wanted + " GiB of disk free", got: free}
			},
		},
	}
}

// ledgerFilters returns the filters for what attempts hold.
func ledgerFilters() []filter {
	return []filter{
		{"slots",
			func(v *view) bool { return v.slotFree(v.stretch) },
			func(v *view) phrase { return phrase{verb: has, object: "no free slot of " + number(v.n.now.slots)} },
		},
		{"remoteTasks",
			func(v *view) bool { return v.remoteFree() },
			func(v *view) phrase {
				return phrase{verb: has, object: count(v.n.remotes, "task") + " running outside of it, the maximum"}
			},
		},
		{"maxParallelPerNode",
			func(v *view) bool {
				most := int(v.constraints.GetMaxParallelPerNode())
				return most == 0 || v.n.perRun[v.runID] < most
			},
			func(v *view) phrase {
				return phrase{verb: has, object: count(v.n.perRun[v.runID], "task") + " of this run, the maximum"}
			},
		},
		{"perNode",
			func(v *view) bool {
				most := int(v.gang.GetPerNode())
				return most == 0 || v.membersThere() < most
			},
			func(v *view) phrase {
				return phrase{verb: has, object: count(v.membersThere(), "member") + " of this gang, the maximum"}
			},
		},
		{"freeCores",
			func(v *view) bool { return v.coresFree(v.stretch) },
			func(v *view) phrase {
				free, wanted := max(0, v.n.now.milliCores-v.n.now.usedMilli), thousandths(v.need.milliCores)
				beside := v.n.heldBeside(func(a amount) string { return thousandths(a.milliCores) })
				return phrase{verb: has, object: cores(free) + " free of " + wanted + " asked" + beside,
					want: wanted + " cores free", got: thousandths(free) + beside}
			},
		},
		{"freeMemory",
			func(v *view) bool { return v.need.memoryMB == 0 || v.need.memoryMB <= v.n.now.freeMB },
			func(v *view) phrase {
				free, wanted := number(max(0, v.n.now.freeMB)), number(v.need.memoryMB)
				beside := v.n.heldBeside(func(a amount) string { return mebibytes(a.memoryMB) })
				return phrase{verb: has, object: free + " MiB free of " + wanted + " asked" + beside,
					want: wanted + " MiB free", got: free + beside}
			},
		},
		{"freeGpus",
			func(v *view) bool { return v.gpuCapacity() },
			func(v *view) phrase {
				if v.need.gpuPart != nil {
					return v.gpuPartLack()
				}
				if taken := v.missingGPUs(v.gpuFits); len(taken) > 0 {
					return phrase{verb: has, object: noun("GPU", len(taken)) + strings.Join(taken, ", ") + " in use"}
				}
				free := v.countGPUs(v.gpuFits)
				return phrase{verb: has, object: count(free, "GPU") + v.gpuKind() + " free of " + number(v.need.gpus) + " asked",
					want: v.wantedGPUs(), got: number(free)}
			},
		},
		{"freeNuma",
			func(v *view) bool { return v.need.numa == noNUMA || v.numaCapacity(v.need.numa) },
			func(v *view) phrase {
				return phrase{verb: has, object: "no room left on NUMA node " + number(v.need.numa)}
			},
		},
	}
}

// gpuPartLack describes the most room on any suitable GPU for the requested part: of those with enough of the share, the most
// memory.
func (v *view) gpuPartLack() phrase {
	asked, most, memory := int64(v.need.gpuPart.GetThousandths()), int64(0), int64(0)
	for _, g := range v.n.gpus {
		use := v.n.machine.gpuUse(g.index)
		if !v.gpuSuits(g) {
			continue
		}
		most = max(most, use.Free())
		if use.Whole == 0 && use.Free() >= asked {
			memory = max(memory, g.memoryMB-use.MemoryMB)
		}
	}
	if most < asked {
		return phrase{verb: has, object: thousandths(most) + " of a GPU" + v.gpuKind() + " free of " + thousandths(asked) + " asked",
			want: v.wantedGPUs(), got: thousandths(most)}
	}
	free, wanted := number(memory), number(v.need.gpuMB)
	return phrase{verb: has, object: free + " MiB of a GPU free of " + wanted + " asked", want: wanted + " MiB of a GPU free", got: free}
}

// gpuKind returns what the request asks of each of its GPUs, to follow "GPU", or "".
func (v *view) gpuKind() string {
	kind := ""
	if v.need.gpuModel != "" {
		kind = " of model " + v.need.gpuModel
	}
	if v.need.gpuMB > 0 {
		kind += " with " + mebibytes(v.need.gpuMB)
	}
	return kind
}

// wantedGPUs returns what a reason reports as missing on every node, or "" if the request names
// GPUs by index, because then their number explains nothing.
func (v *view) wantedGPUs() string {
	switch {
	case len(v.target.GPUIndices) > 0:
		return ""
	case v.need.gpuPart.GetThousandths() > 0:
		return thousandths(int64(v.need.gpuPart.GetThousandths())) + " of a GPU" + v.gpuKind() + " free"
	}
	return count(v.need.gpus, "free GPU") + v.gpuKind()
}

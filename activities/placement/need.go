package placement

import (
	"math"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// noNUMA stands for no NUMA node or an unknown one.
const noNUMA = -1

// need is what a request takes from a node. Cores are counted in thousandths, so that sums of
// fractions balance to exactly zero.
type need struct {
	milliCores int64
	memoryMB   int64
	gpus       int
	gpuPart    *v1.GpuPart // of the one GPU; nil for whole ones
	gpuMB      int64       // memory that each of the GPUs must have in total
	gpuModel   string      // what the name of the GPUs must contain, folded
	numa       int         // requested NUMA node, or noNUMA
	remote     bool
}

func needOf(req *historyv1.TaskRequest, target Target) need {
	if v1.IsRemote(req.GetType()) {
		return need{numa: noNUMA, remote: true} // its resources are taken where it runs
	}
	res := req.GetResources()
	gpus := policy.GPUsOf(res)
	n := need{
		milliCores: 1000,
		memoryMB:   int64(res.GetMemoryMb()),
		gpus:       max(gpus.Count, target.GPUs),
		gpuPart:    gpus.Part,
		gpuMB:      int64(res.GetGpuMemoryMb()),
		gpuModel:   foldModel(res.GetGpuModel()),
		numa:       target.NUMA,
	}
	if res != nil && res.NumaNode != nil && n.numa == noNUMA {
		n.numa = int(res.GetNumaNode())
	}
	if res != nil && res.Cores != nil {
		n.milliCores = thousandthsOf(res.GetCores())
	}
	if req.GetConstraints().GetRequiresGpu() {
		n.gpus = max(n.gpus, 1) // a node gives an attempt only GPUs that the attempt holds
	}
	return n
}

// laterOf returns what other tasks need of the node of a request.
func laterOf(res *v1.Resources) need {
	return need{milliCores: thousandthsOf(res.GetCores()), memoryMB: int64(res.GetMemoryMb()), gpus: policy.GPUsOf(res).Count}
}

// thousandthsOf converts cores to thousandths and rounds up. It tolerates the error of decimal
// fractions: 1.1 cores must not become 1101 thousandths.
func thousandthsOf(cores float64) int64 { return int64(math.Ceil(cores*1000 - 1e-6)) }

// quantity returns what the need takes of each unit.
func (n *need) quantity() quantity {
	if n.remote {
		return quantity{remoteUnit: 1}
	}
	return quantity{slotUnit: 1, coreUnit: n.milliCores, memoryUnit: n.memoryMB, gpuUnit: milliGPUs(n.gpus, n.gpuPart)}
}

// amount is the sum of what several attempts hold. Remote attempts do not count.
type amount struct {
	tasks      int
	milliCores int64
	memoryMB   int64
}

func (a *amount) add(g grant) {
	if g.remote {
		return
	}
	a.tasks++
	a.milliCores += g.milliCores
	a.memoryMB += g.memoryMB
}

func (a *amount) sub(g grant) {
	if g.remote {
		return
	}
	a.tasks--
	a.milliCores -= g.milliCores
	a.memoryMB -= g.memoryMB
}

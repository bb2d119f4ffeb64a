package placement

import (
	"math"

	v1 "switchyard/proto/switchyard/v1"
)

// noNUMA stands for no NUMA node, or for one that is not known.
const noNUMA = -1

// need is what a request takes of a node. Cores are counted in thousandths, so
// that sums of fractions balance to exactly zero.
type need struct {
	milliCores int64
	memoryMB   int64
	gpus       int
	numa       int // NUMA node that it asks for, or noNUMA
	remote     bool
}

func needOf(req *v1.TaskRequest, target Target) need {
	if v1.IsRemote(req.GetType()) {
		return need{numa: noNUMA, remote: true} // its resources are those of where it runs
	}
	res := req.GetResources()
	n := need{
		milliCores: 1000,
		memoryMB:   int64(res.GetMemoryMb()),
		gpus:       max(int(res.GetGpus()), target.GPUs),
		numa:       target.NUMA,
	}
	if res != nil && res.NumaNode != nil && n.numa == noNUMA {
		n.numa = int(res.GetNumaNode())
	}
	if res != nil && res.Cores != nil {
		n.milliCores = thousandthsOf(res.GetCores())
	}
	if req.GetConstraints().GetRequiresGpu() {
		n.gpus = max(n.gpus, 1) // a node gives an attempt no GPU that it does not hold
	}
	return n
}

// thousandthsOf rounds up, but decimal fractions are not exact: 1.1 cores must
// not become 1101 thousandths.
func thousandthsOf(cores float64) int64 { return int64(math.Ceil(cores*1000 - 1e-6)) }

// amount is what a number of attempts hold, without those that run outside of the nodes.
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

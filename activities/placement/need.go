package placement

import (
	"math"

	v1 "switchyard/proto/switchyard/v1"
)

// need is what a request takes of a node. Cores are counted in thousandths, so
// that sums of fractions balance to exactly zero.
type need struct {
	milliCores int64
	memoryMB   int64
	gpus       int
	usesGPU    bool // wants a node with GPUs, whether or not it holds any
	numa       bool // wants a certain NUMA node
}

func needOf(req *v1.TaskRequest, target Target) need {
	res := req.GetResources()
	n := need{
		milliCores: 1000,
		memoryMB:   int64(res.GetMemoryMb()),
		gpus:       max(int(res.GetGpus()), target.GPUs),
		numa:       target.NUMA >= 0 || res != nil && res.NumaNode != nil,
	}
	if res != nil && res.Cores != nil {
		// Decimal fractions are not exact: 1.1 cores must not become 1101 thousandths.
		n.milliCores = int64(math.Ceil(res.GetCores()*1000 - 1e-6))
	}
	n.usesGPU = n.gpus > 0 || req.GetConstraints().GetRequiresGpu()
	return n
}

// amount is what a number of requests hold.
type amount struct {
	tasks      int
	milliCores int64
	memoryMB   int64
	gpus       int
}

func (a *amount) add(n need) {
	a.tasks++
	a.milliCores += n.milliCores
	a.memoryMB += n.memoryMB
	a.gpus += n.gpus
}

func (a *amount) sub(n need) {
	a.tasks--
	a.milliCores -= n.milliCores
	a.memoryMB -= n.memoryMB
	a.gpus -= n.gpus
}

func (a *amount) merge(b amount) {
	a.tasks += b.tasks
	a.milliCores += b.milliCores
	a.memoryMB += b.memoryMB
	a.gpus += b.gpus
}

package placement

import v1 "switchyard/proto/switchyard/v1"

// The units of a quantity: everything that tasks take from the fleet.
const (
	slotUnit   = iota // places of tasks on nodes
	coreUnit          // thousandths of cores
	memoryUnit        // MiB
	gpuUnit           // thousandths of GPUs
	remoteUnit        // places of attempts that nodes supervise elsewhere
	units
)

// quantity is an amount of each unit.
type quantity [units]int64

// quantityOf returns what a grant takes.
func quantityOf(g grant) quantity {
	if g.remote {
		return quantity{remoteUnit: 1}
	}
	return quantity{slotUnit: 1, coreUnit: g.milliCores, memoryUnit: g.memoryMB, gpuUnit: milliGPUs(len(g.gpus), g.gpuPart)}
}

// milliGPUs returns thousandths of GPUs. A part of a GPU that is limited by its memory only counts as a whole one.
func milliGPUs(n int, part *v1.GpuPart) int64 {
	if share := part.GetThousandths(); share > 0 {
		return int64(share)
	}
	return int64(n) * 1000
}

func (q *quantity) add(o quantity) {
	for i := range q {
		q[i] += o[i]
	}
}

func (q *quantity) sub(o quantity) {
	for i := range q {
		q[i] -= o[i]
	}
}

// covers reports whether the quantity has at least what o has of every unit that o has any of.
func (q *quantity) covers(o quantity) bool {
	for i := range q {
		if o[i] > 0 && q[i] < o[i] {
			return false
		}
	}
	return true
}

// share returns the dominant share of the quantity in a total: its largest part of any unit.
func (q *quantity) share(total *quantity) float64 {
	share := 0.0
	for i := range q {
		if q[i] > 0 {
			share = max(share, float64(q[i])/float64(max(total[i], q[i])))
		}
	}
	return share
}

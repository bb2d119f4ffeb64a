package node

import (
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// account sums up what several attempts hold. Resources that are bound to a NUMA node count for
// that node and for the machine; other resources may be on any NUMA node, so they count only for
// the machine.
type account struct {
	all  amount
	numa map[int32]amount
	gpus map[int32]v1.GPUUse // by GPU index; no entry for a free GPU
}

func newAccount() account {
	return account{numa: map[int32]amount{}, gpus: map[int32]v1.GPUUse{}}
}

func (a account) clone() account {
	return account{all: a.all, numa: maps.Clone(a.numa), gpus: maps.Clone(a.gpus)}
}

func (a *account) add(u units) {
	a.all = a.all.plus(u.amount)
	for _, gpu := range u.gpus {
		use := a.gpus[gpu]
		use.Add(u.part)
		a.gpus[gpu] = use
	}
	if u.numa != nil {
		a.numa[*u.numa] = a.numa[*u.numa].plus(u.amount)
	}
}

func (a *account) remove(u units) {
	a.all = a.all.minus(u.amount)
	for _, gpu := range u.gpus {
		use := a.gpus[gpu]
		if use.Remove(u.part); use == (v1.GPUUse{}) {
			delete(a.gpus, gpu)
		} else {
			a.gpus[gpu] = use
		}
	}
	if u.numa != nil {
		a.numa[*u.numa] = a.numa[*u.numa].minus(u.amount)
	}
}

// fits reports whether there is room for one more attempt.
func (a *account) fits(u units, c capacity) bool {
	if !u.amount.fits(a.all, c.all) {
		return false
	}
	for _, gpu := range u.gpus {
		if memory, ok := c.gpus[gpu]; !ok || !a.gpus[gpu].Fits(u.part, memory) {
			return false
		}
	}
	if u.numa == nil {
		return true
	}
	node, ok := c.numaNode(*u.numa)
	return ok && u.amount.fits(a.numa[*u.numa], node)
}

// need returns the sum as a Need, without NUMA nodes.
func (a *account) need() Need {
	n := a.all.need()
	n.GPUs = slices.Sorted(maps.Keys(a.gpus))
	return n
}

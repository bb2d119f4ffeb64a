package node

import (
	"maps"
	"slices"
)

// account sums up what several attempts take. What is bound to a NUMA node is
// counted there and in the whole; what is not may lie on any, so it counts in
// the whole only.
type account struct {
	all  amount
	numa map[int32]amount
	gpus map[int32]int // GPU index -> number of attempts that it is for
}

func newAccount() account {
	return account{numa: map[int32]amount{}, gpus: map[int32]int{}}
}

func (a account) clone() account {
	return account{all: a.all, numa: maps.Clone(a.numa), gpus: maps.Clone(a.gpus)}
}

func (a *account) add(u units) {
	a.all = a.all.plus(u.amount)
	for _, gpu := range u.gpus {
		a.gpus[gpu]++
	}
	if u.numa != nil {
		a.numa[*u.numa] = a.numa[*u.numa].plus(u.amount)
	}
}

func (a *account) remove(u units) {
	a.all = a.all.minus(u.amount)
	for _, gpu := range u.gpus {
		if a.gpus[gpu]--; a.gpus[gpu] == 0 {
			delete(a.gpus, gpu)
		}
	}
	if u.numa != nil {
		a.numa[*u.numa] = a.numa[*u.numa].minus(u.amount)
	}
}

// fits reports whether there is room for one more.
func (a *account) fits(u units, c capacity) bool {
	if !u.amount.fits(a.all, c.all) {
		return false
	}
	for _, gpu := range u.gpus {
		if a.gpus[gpu] > 0 || !c.gpus[gpu] {
			return false
		}
	}
	if u.numa == nil {
		return true
	}
	node, ok := c.numaNode(*u.numa)
	return ok && u.amount.fits(a.numa[*u.numa], node)
}

// need is the sum, bound to no NUMA node.
func (a *account) need() Need {
	n := a.all.need()
	n.GPUs = slices.Sorted(maps.Keys(a.gpus))
	return n
}

package node

import (
	"fmt"
	"slices"
	"sync"

	v1 "switchyard/proto/switchyard/v1"
)

// Machine is what the local nodes of one process share: the size of the
// machine, what is reserved of it, and the line of those that wait. Its methods
// may be called from several goroutines at once.
type Machine struct {
	// measured: its size is that of the machine of this process, as probes see it.
	measured bool
	gpus     *background[[]*v1.GpuSnapshot] // one reader for the probes of all nodes; nil: each has its own

	mu       sync.Mutex
	size     Size
	capacity capacity
	reserved account
	line     []*waiter       // in order of arrival
	grants   map[int32]int64 // GPU index -> how often it was handed out
}

// NewMachine returns a machine of that size, of which nothing is reserved.
func NewMachine(size Size) *Machine {
	m := &Machine{reserved: newAccount(), grants: map[int32]int64{}}
	m.set(size)
	return m
}

// Total returns how large the machine is.
func (m *Machine) Total() Size {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size.clone()
}

// Resize changes the size: GPUs whose driver was late show up, processors go
// off line. What is held stays held although it may be more than there is now;
// who waits for what is no more is refused with ErrTooLarge.
func (m *Machine) Resize(size Size) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(size)
	m.refuse(func(w *waiter) error { return m.possible(w.held.id, w.held.units) })
	m.grant()
}

// set is called with m.mu held, or before the machine is shared.
func (m *Machine) set(size Size) {
	m.size = size.clone()
	m.capacity = size.capacity()
}

// Reserved returns what the attempts of all its nodes hold.
func (m *Machine) Reserved() Need {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserved.need()
}

// gpuUse reports whether an attempt holds a GPU, and how often it has been handed
// out, so that use between two calls shows too.
func (m *Machine) gpuUse(index int32) (held bool, grants int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserved.gpus[index] > 0, m.grants[index]
}

// possible says what of a need the machine could never meet. m.mu is held.
func (m *Machine) possible(id string, u units) error {
	if lack := m.capacity.lacks(u); lack != "" {
		return fmt.Errorf("acquire %s for %s: %w: %s", u.need(), id, ErrTooLarge, lack)
	}
	return nil
}

// grant starts whoever can start, in order of arrival. A waiter whose node has
// no free slot is passed over, since it takes nothing from the others. For one
// that waits for cores, memory or GPUs, all that it needs and its slot are set
// aside: those behind it start only with what is left then, or small needs would
// keep a big one waiting for ever. m.mu is held.
func (m *Machine) grant() {
	rest := m.line[:0]
	spoken := &m.reserved     // what is held; from the first that waits on, and what is set aside
	var aside map[*Ledger]int // slots that are set aside
	for _, w := range m.line {
		u := w.held.units
		switch {
		case !u.remote && w.ledger.taken+aside[w.ledger] >= w.ledger.slots:
			rest = append(rest, w)
			continue
		case !spoken.fits(u, m.capacity):
			if spoken == &m.reserved {
				held := m.reserved.clone()
				spoken, aside = &held, map[*Ledger]int{}
			}
			aside[w.ledger]++
			spoken.add(u)
			rest = append(rest, w)
			continue
		}
		if m.reserved.add(u); spoken != &m.reserved {
			spoken.add(u)
		}
		for _, gpu := range u.gpus {
			m.grants[gpu]++
		}
		w.ledger.start(w.held)
		w.granted = true
		close(w.ready)
	}
	clear(m.line[len(rest):])
	m.line = rest
}

// refuse takes those out of the line for whom why has an error. m.mu is held.
func (m *Machine) refuse(why func(*waiter) error) {
	m.line = slices.DeleteFunc(m.line, func(w *waiter) bool {
		if w.refusal = why(w); w.refusal == nil {
			return false
		}
		delete(w.ledger.ids, w.held.id)
		close(w.ready)
		return true
	})
}

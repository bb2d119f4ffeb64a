package node

import (
	"fmt"
	"slices"
	"sync"

	v1 "switchyard/proto/switchyard/v1"
)

// Machine is what the local nodes of one process share: the size of the machine, the reserved
// resources, and the queue of waiting calls of Acquire. It is safe for concurrent use.
type Machine struct {
	// measured is set if the size is measured by probes on this machine.
	measured bool
	gpus     *background[[]*v1.GpuSnapshot] // shared by the probes of all nodes; nil if each probe reads by itself

	mu       sync.Mutex
	size     Size
	capacity capacity
	reserved account
	line     []*waiter       // waiting calls in order of arrival
	grants   map[int32]int64 // by GPU index: how often the GPU was assigned
}

// NewMachine returns a machine of the given size with nothing reserved.
func NewMachine(size Size) *Machine {
	m := &Machine{reserved: newAccount(), grants: map[int32]int64{}}
	m.set(size)
	return m
}

// Total returns the size of the machine.
func (m *Machine) Total() Size {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size.clone()
}

// Resize changes the size, because GPUs appear late after their driver has loaded, or processors go
// offline. Running attempts keep what they hold, even if that is now more than there is. Waiters
// that need more than the new size fail with ErrTooLarge.
func (m *Machine) Resize(size Size) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(size)
	m.refuse(func(w *waiter) error { return m.possible(w.held.id, w.held.units) })
	m.grant()
}

// set sets the size. The caller holds m.mu, unless the machine is not shared yet.
func (m *Machine) set(size Size) {
	m.size = size.clone()
	m.capacity = size.capacity()
}

// Reserved returns what the attempts of all nodes of the machine hold.
func (m *Machine) Reserved() Need {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserved.need()
}

// gpuUse reports whether an attempt holds a GPU, and how often the GPU has been assigned, which
// shows use between two calls.
func (m *Machine) gpuUse(index int32) (held bool, grants int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, held = m.reserved.gpus[index]
	return held, m.grants[index]
}

// possible returns ErrTooLarge if the machine could never meet the need. The caller holds m.mu.
func (m *Machine) possible(id string, u units) error {
	if lack := m.capacity.lacks(u); lack != "" {
		return fmt.Errorf("acquire %s for %s: %w: %s", u.need(), id, ErrTooLarge, lack)
	}
	return nil
}

// grant starts the waiters that can start, in order of arrival. It skips a waiter whose node has no
// free slot, because that waiter holds up no other. For a waiter that lacks cores, memory or GPUs,
// grant sets aside everything that the waiter needs, including its slot. Later waiters start only
// with the remainder, since otherwise small needs could starve a large one. The caller holds m.mu.
func (m *Machine) grant() {
	rest := m.line[:0]
	spoken := &m.reserved     // reserved resources; from the first blocked waiter on, a copy that includes what is set aside
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

// refuse removes the waiters for which why returns an error, and passes them the error. The caller
// holds m.mu.
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

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

var (
	// ErrTooLarge means that a need exceeds the total of the machine.
	ErrTooLarge = errors.New("more than the machine has")
	// ErrDuplicate means that the id already holds a place or waits for one.
	ErrDuplicate = errors.New("already on the ledger")
	// ErrDraining means that the node accepts no more attempts.
	ErrDraining = errors.New("the node is draining")
)

// Ledger assigns the slots of one node, together with the resources that each attempt needs of the
// machine. It is safe for concurrent use.
type Ledger struct {
	machine *Machine
	slots   int

	// machine.mu guards the fields below.
	ids     map[string]struct{} // running and waiting
	running []*entry            // in the order in which they started
	taken   int                 // slots of the running attempts
	closed  error               // why no more attempts are accepted, or nil
	idle    chan struct{}       // closed when nothing runs any more; nil if no caller waits for that
}

// Running is an attempt that holds a place on the ledger.
type Running struct {
	// ID is the id that the place was acquired for.
	ID string
	// Need is what the attempt holds.
	Need Need
}

type entry struct {
	id    string
	units units
}

// waiter is one call of Acquire.
type waiter struct {
	ledger *Ledger
	held   *entry
	ready  chan struct{} // closed when granted or refused

	// machine.mu guards the fields below until ready is closed.
	granted bool
	refusal error
}

// NewLedger returns the ledger of a node on machine m. slots is the maximum number of concurrent
// attempts, at least 1.
func NewLedger(m *Machine, slots int) *Ledger {
	return &Ledger{machine: m, slots: max(slots, 1), ids: map[string]struct{}{}}
}

// Slots returns the maximum number of attempts that the node runs concurrently.
func (l *Ledger) Slots() int { return l.slots }

// Machine returns the machine of the node.
func (l *Ledger) Machine() *Machine { return l.machine }

// Acquire waits until the node has a free slot and the machine has the needed resources, and takes
// both. Calls are served in order of arrival over all nodes of the machine; a later call overtakes
// a waiting one only if it takes nothing that the waiting one needs. release gives everything back;
// a second call of release is a no-op.
//
// Acquire returns ErrTooLarge if the machine could never meet the need, ErrDuplicate if the id is
// already on the ledger, ErrDraining while the node drains, and the cause of ctx if ctx ends first.
// After an error nothing is taken.
func (l *Ledger) Acquire(ctx context.Context, id string, need Need) (release func(), err error) {
	u, err := need.units()
	if err != nil {
		return nil, fmt.Errorf("acquire for %s: %w", id, err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w := &waiter{ledger: l, held: &entry{id: id, units: u}, ready: make(chan struct{})}
	if err := l.enter(w); err != nil {
		return nil, err
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		l.leave(w)
		return nil, context.Cause(ctx)
	}
	if w.refusal != nil {
		return nil, w.refusal
	}
	return sync.OnceFunc(func() { l.leave(w) }), nil
}

// Restore takes what an attempt has held since before this process started, even if there is no
// room for it, so that no other attempt gets it. release works as for Acquire. Restore returns
// ErrDuplicate if the id is already on the ledger.
func (l *Ledger) Restore(id string, need Need) (release func(), err error) {
	u, err := need.units()
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", id, err)
	}
	m := l.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := l.ids[id]; ok {
		return nil, fmt.Errorf("restore %s: %w", id, ErrDuplicate)
	}
	w := &waiter{ledger: l, held: &entry{id: id, units: u}, granted: true}
	l.ids[id] = struct{}{}
	l.start(w.held)
	m.reserved.add(u)
	for _, gpu := range u.gpus {
		m.grants[gpu]++
	}
	return sync.OnceFunc(func() { l.leave(w) }), nil
}

func (l *Ledger) enter(w *waiter) error {
	m := l.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.possible(w.held.id, w.held.units); err != nil {
		return err
	}
	if l.closed != nil {
		return refusal(w, l.closed)
	}
	if _, ok := l.ids[w.held.id]; ok {
		return fmt.Errorf("acquire for %s: %w", w.held.id, ErrDuplicate)
	}
	l.ids[w.held.id] = struct{}{}
	m.line = append(m.line, w)
	m.grant()
	return nil
}

// start adds an attempt to the running ones and takes its slot. The caller holds machine.mu.
func (l *Ledger) start(e *entry) {
	l.running = append(l.running, e)
	if !e.units.remote {
		l.taken++
	}
}

// leave removes a waiter from the ledger, whether it was granted, refused or still waits.
func (l *Ledger) leave(w *waiter) {
	m := l.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case w.refusal != nil:
		return
	case w.granted:
		m.reserved.remove(w.held.units)
		l.running = slices.DeleteFunc(l.running, func(e *entry) bool { return e == w.held })
		if !w.held.units.remote {
			l.taken--
		}
	default:
		m.line = slices.DeleteFunc(m.line, func(o *waiter) bool { return o == w })
	}
	delete(l.ids, w.held.id)
	m.grant()
	if len(l.running) == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// Running returns the attempts that hold a place on the node, oldest first.
func (l *Ledger) Running() []Running {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	out := make([]Running, 0, len(l.running))
	for _, e := range l.running {
		out = append(out, Running{ID: e.id, Need: e.units.need()})
	}
	return out
}

// Reserved returns what the attempts of this node hold. Snapshots report Machine.Reserved, which
// covers all nodes of the machine.
func (l *Ledger) Reserved() Need {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	sum := newAccount()
	for _, e := range l.running {
		sum.add(e.units)
	}
	return sum.need()
}

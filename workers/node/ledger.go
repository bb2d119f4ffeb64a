package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

var (
	// ErrTooLarge says that a need exceeds what its machine has in all.
	ErrTooLarge = errors.New("more than the machine has")
	// ErrDuplicate says that the id holds a place already, or waits for one.
	ErrDuplicate = errors.New("already on the ledger")
	// ErrDraining says that the node lets nothing more in.
	ErrDraining = errors.New("the node is draining")
)

// Ledger gives out the slots of one node, and with each what its attempt needs
// of the machine. Its methods may be called from several goroutines at once.
type Ledger struct {
	machine *Machine
	slots   int

	// Guarded by machine.mu.
	ids     map[string]struct{} // running and waiting
	running []*entry            // in the order in which they started
	taken   int                 // slots that those have
	closed  error               // why nothing more is let in; nil: it is
	idle    chan struct{}       // closed when nothing runs any more; nil: no caller waits for it
}

// Running is an attempt that holds a place.
type Running struct {
	// ID that it was acquired for.
	ID string
	// Need that it holds.
	Need Need
}

type entry struct {
	id    string
	units units
}

// waiter is a call to Acquire that waits.
type waiter struct {
	ledger *Ledger
	held   *entry
	ready  chan struct{} // closed when granted or refused

	// Guarded by machine.mu until ready is closed.
	granted bool
	refusal error
}

// NewLedger returns the ledger of a node on the machine that runs at most so
// many attempts at once, at least 1.
func NewLedger(m *Machine, slots int) *Ledger {
	return &Ledger{machine: m, slots: max(slots, 1), ids: map[string]struct{}{}}
}

// Slots returns the most attempts that the node runs at once.
func (l *Ledger) Slots() int { return l.slots }

// Machine returns the machine that the node is on.
func (l *Ledger) Machine() *Machine { return l.machine }

// Acquire waits until the node has a free slot and the machine has what is
// needed, and takes both. Calls are served in order of arrival, over all nodes
// of the machine: one that waits is overtaken only by those that take nothing
// of what it needs. release gives back what was taken; calling it again does
// nothing.
//
// The error is ErrTooLarge when the machine could never meet the need,
// ErrDuplicate when the id is on the ledger already, ErrDraining while the node
// drains, and the cause of ctx when that ends first; then nothing is taken.
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

// Restore takes what an attempt has held since before this process, whether there is
// room for it or not, so that no other attempt is given it. release is that of Acquire. The
// error is ErrDuplicate when the id is on the ledger already.
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

// start gives an attempt its place. The caller holds machine.mu.
func (l *Ledger) start(e *entry) {
	l.running = append(l.running, e)
	if !e.units.remote {
		l.taken++
	}
}

// leave takes a waiter off the ledger, whatever has become of it.
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

// Running returns the attempts that hold a place on the node, the oldest first.
func (l *Ledger) Running() []Running {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	out := make([]Running, 0, len(l.running))
	for _, e := range l.running {
		out = append(out, Running{ID: e.id, Need: e.units.need()})
	}
	return out
}

// Reserved returns what the attempts of this node hold. What a snapshot reports
// is Machine.Reserved, over all nodes of the machine.
func (l *Ledger) Reserved() Need {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	sum := newAccount()
	for _, e := range l.running {
		sum.add(e.units)
	}
	return sum.need()
}

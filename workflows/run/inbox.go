package run

import "switchyard/workflows/core/dag"

// inbox holds what has happened since the core was last asked for decisions.
type inbox struct {
	events []dag.Event // for the core, in order
	woken  bool        // something other than an event has happened
}

// raise adds events for the core.
func (b *inbox) raise(events ...dag.Event) { b.events = append(b.events, events...) }

// wake starts another round of the loop even without an event.
func (b *inbox) wake() { b.woken = true }

// beginRound marks the start of a round, which handles whatever the run was woken for.
func (b *inbox) beginRound() { b.woken = false }

// hasEvents reports whether there are events for the core.
func (b *inbox) hasEvents() bool { return len(b.events) > 0 }

// isEmpty reports whether nothing has happened that another round would handle.
func (b *inbox) isEmpty() bool { return !b.woken && !b.hasEvents() }

// takeEvents removes the events and returns them.
func (b *inbox) takeEvents() []dag.Event {
	events := b.events
	b.events = nil
	return events
}

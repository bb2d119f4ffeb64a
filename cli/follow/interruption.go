package follow

import (
	"sync"
	"time"
)

// readingTime is how long a person gets to read what an interrupt does before one that would cut `finally` short counts.
const readingTime = time.Second

// step is what the watcher does next for an interrupted run in this process.
type step int

const (
	noStep       step = iota
	ignore            // ignore an interrupt that came before a person could read what it does
	kill              // kill the programs that have been asked to end
	awaitFinally      // wait for `finally`
	endFinally        // cancel `finally`
	force             // end the run by force
	quit              // end this process at once
)

// interruption decides what further interrupts of a run in this process do, and what happens without one. Interrupts before
// `finally` has begun end the tasks only. It is safe for concurrent use.
type interruption struct {
	now        func() time.Time
	hasFinally bool // the run has `finally`

	mu      sync.Mutex
	current step      // the newest step; noStep while the tasks are asked to end
	ordered bool      // `finally` has been cancelled, so it is ended like the tasks before
	told    time.Time // when the person was told what the next interrupt does; zero before
}

// interrupted returns the step of an interrupt.
func (i *interruption) interrupted() step {
	i.mu.Lock()
	defer i.mu.Unlock()
	isTold := !i.told.IsZero() && i.now().Sub(i.told) >= readingTime
	switch {
	case i.current == noStep || i.current == endFinally:
		return i.take(kill)
	case i.current == force:
		return quit
	case !isTold:
		return ignore
	case i.current == awaitFinally:
		i.ordered = true
		return i.take(endFinally)
	}
	return quit
}

// late returns the step when the run has not ended in time.
func (i *interruption) late() step {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.current == noStep || i.current == endFinally:
		return i.take(kill)
	case i.current == kill && (!i.hasFinally || i.ordered):
		return i.take(force)
	}
	return noStep
}

// finallyBegan returns the step when `finally` runs.
func (i *interruption) finallyBegan() step {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ordered || i.current == awaitFinally {
		return noStep
	}
	return i.take(awaitFinally)
}

// finallyContinues records that `finally` could not be cancelled.
func (i *interruption) finallyContinues() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ordered = false
	i.take(awaitFinally)
}

// isNewest reports whether no step has followed s.
func (i *interruption) isNewest(s step) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current == s
}

// tell records that the person has been told what the next interrupt does after step s.
func (i *interruption) tell(s step) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current == s {
		i.told = i.now()
	}
}

// take makes a step the newest one. The caller holds mu.
func (i *interruption) take(s step) step {
	i.current, i.told = s, time.Time{}
	return s
}

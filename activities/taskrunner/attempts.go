package taskrunner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// attempts are those that a node has accepted and not answered yet, with what a
// drain means for them. The zero value is ready. Its methods may be called from
// several goroutines at once.
type attempts struct {
	mu   sync.Mutex
	live map[*attempt]struct{}
	// byKey finds those that are live.
	byKey map[attemptKey]*attempt
	// entered counts the attempts that the node has ever accepted.
	entered int
	// idle is closed when none is live that a drain waits for; nil while no caller waits for that.
	idle chan struct{}

	// cause is not nil while the node drains.
	cause error
	// leaving is not nil once the worker stops: why it lets go of lasting attempts.
	leaving error
	// over says that the deadline of the drain has passed, and deadline when it will.
	over     bool
	deadline *time.Timer
}

func (s *attempts) enter(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live, s.byKey = map[*attempt]struct{}{}, map[attemptKey]*attempt{}
	}
	s.live[a], s.byKey[a.key] = struct{}{}, a
	s.entered++
	switch {
	case a.isLasting() && s.leaving != nil:
		a.stop(s.leaving)
	case !a.isLasting() && s.cause != nil:
		a.stop(s.cause)
	}
}

// find returns the attempt of a key; nil: there is none.
func (s *attempts) find(key attemptKey) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

// all are those that the node has now.
func (s *attempts) all() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.live))
}

// total returns how many attempts the node has ever accepted.
func (s *attempts) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entered
}

// start notes that an attempt is about to start, which from now on may finish
// when the node drains. It is false when the node does so already.
func (s *attempts) start(a *attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.started = s.cause == nil
	return a.started
}

func (s *attempts) leave(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, lives := s.live[a]; !lives {
		return
	}
	delete(s.live, a)
	close(a.fetched)
	if s.byKey[a.key] == a {
		delete(s.byKey, a.key)
	}
	s.announceIdle()
}

// settle notes that an attempt is lasting now: no drain waits for it.
func (s *attempts) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announceIdle()
}

// announceIdle wakes who waits for the end of all attempts, if that has come. mu is held.
func (s *attempts) announceIdle() {
	if s.idle != nil && s.isIdle() {
		close(s.idle)
		s.idle = nil
	}
}

// isIdle reports whether no attempt is live that a drain waits for. mu is held.
func (s *attempts) isIdle() bool {
	for a := range s.live {
		if !a.isLasting() {
			return false
		}
	}
	return true
}

// stop ends the attempts that wait, those that another node can continue, and all when the
// deadline has passed. mu is held.
func (s *attempts) stop() {
	for a := range s.live {
		if !a.isLasting() && (s.over || !a.started || a.isRemote()) {
			a.stop(s.cause)
		}
	}
}

// BeginDrain makes the node hand back every attempt that has not started, those
// that come from now on included, and every attempt of a remote type, which another node continues. Lasting attempts
// continue. What else has started may finish until the deadline, and is then ended and handed back; the zero time is no deadline. None of them
// spends an attempt. The reason is for people and may be empty.
//
// Called again, it sets another deadline. It may be called at any time.
func (n *Node) BeginDrain(deadline time.Time, reason string) {
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = drained{fmt.Sprintf("node %s is draining", n.Name)}
	if reason != "" {
		s.cause = drained{fmt.Sprintf("node %s is draining: %s", n.Name, reason)}
	}
	if s.deadline != nil {
		s.deadline.Stop()
		s.deadline = nil
	}
	s.over = !deadline.IsZero() && !time.Now().Before(deadline)
	if !deadline.IsZero() && !s.over {
		var timer *time.Timer
		timer = time.AfterFunc(time.Until(deadline), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.deadline == timer {
				s.over = true
				s.stop()
			}
		})
		s.deadline = timer
	}
	s.stop()
}

// EndDrain lets the node accept attempts again. Those that are ending still end.
func (n *Node) EndDrain() {
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause, s.over = nil, false
	if s.deadline != nil {
		s.deadline.Stop()
		s.deadline = nil
	}
}

// AwaitIdle waits until the node has no attempt, waiting or running, but lasting ones, or until ctx
// ends, whose cause it then returns. New ones may come at once, unless it drains.
func (n *Node) AwaitIdle(ctx context.Context) error {
	s := &n.attempts
	s.mu.Lock()
	if s.isIdle() {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

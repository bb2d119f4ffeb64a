package taskrunner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// attempts holds the attempts that a node has accepted and not yet answered, and the state of its drain. The zero value
// is ready. Its methods may be called from several goroutines at once.
type attempts struct {
	mu   sync.Mutex
	live map[*attempt]struct{}
	// byKey indexes the live attempts.
	byKey map[attemptKey]*attempt
	// entered counts the attempts that the node has accepted since its start.
	entered int
	// idle is closed when no attempt is live that a drain waits for. It is nil while no caller waits for that.
	idle chan struct{}

	// cause is why the drain ends attempts, or nil if the node does not drain.
	cause error
	// leaving is why the stopping worker lets go of lasting attempts, or nil if the worker does not stop.
	leaving error
	// over is set once the deadline of the drain has passed. deadline fires at that time.
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

// find returns the live attempt with a key, or nil.
func (s *attempts) find(key attemptKey) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

// all returns the live attempts in no particular order.
func (s *attempts) all() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.live))
}

// total returns how many attempts the node has accepted since its start.
func (s *attempts) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entered
}

// start marks an attempt as about to start, after which it may finish even if the node drains. It returns false if the
// node already drains.
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

// settle updates the idle state after an attempt has become lasting: no drain waits for it any more.
func (s *attempts) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announceIdle()
}

// announceIdle wakes the callers that wait for all attempts to end, if all have. mu is held.
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

// stop ends the attempts that wait and those that another node can continue. Once the deadline has passed, it ends all
// but lasting ones. mu is held.
func (s *attempts) stop() {
	for a := range s.live {
		if !a.isLasting() && (s.over || !a.started || a.isRemote()) {
			a.stop(s.cause)
		}
	}
}

// BeginDrain makes the node hand back every attempt that has not started, including those that arrive later, and every
// attempt of a remote type, which another node continues. Lasting attempts continue. Any other started attempt may finish
// until the deadline; it is then ended and handed back. The zero time means no deadline. An attempt that is handed back
// does not count as spent. The reason is for people and may be empty.
//
// A further call sets another deadline. BeginDrain may be called at any time.
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

// EndDrain lets the node accept attempts again. An attempt that is already ending still ends.
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

// AwaitIdle waits until the node has no waiting or running attempt except lasting ones. If ctx ends first, it returns the
// cause of ctx. New attempts may arrive at once, unless the node drains.
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

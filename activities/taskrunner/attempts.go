package taskrunner

import (
	"context"
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
	// claims counts how the attempts ended; it has a lock of its own.
	claims claimCounts
	// recording tracks the calls of executor.Capabilities.Recorded in progress.
	recording sync.WaitGroup
	// idle is closed when no attempt is live that a drain waits for. It is nil while no caller waits for that.
	idle chan struct{}

	drain drain
	// keeps is set if drains leave the attempts that have a keeper to the next worker. leaving is the cause with which the
	// stopping worker lets go of them and of lasting attempts, or nil if the worker does not stop. left holds these
	// attempts.
	keeps   bool
	leaving error
	left    map[attemptKey]*attempt
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
	case s.leaving != nil && s.outlivesDrain(a):
		s.handOver(a)
	case s.drain.cause != nil && !s.outlivesDrain(a):
		a.stop(s.drain.cause)
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
	a.started = s.drain.cause == nil
	return a.started
}

func (s *attempts) leave(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, lives := s.live[a]; !lives {
		return
	}
	delete(s.live, a)
	close(a.attendance.fetched)
	if s.byKey[a.key] == a {
		delete(s.byKey, a.key)
	}
	s.announceIdle()
}

// settle updates the idle state after an attempt has become one that no drain waits for any more.
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
		if !s.outlivesDrain(a) {
			return false
		}
	}
	return true
}

// ExtraGrace returns how much longer than the usual time one of the current attempts may take to end after its stop signal.
func (n *Node) ExtraGrace() time.Duration {
	extra := time.Duration(0)
	for _, a := range n.attempts.all() {
		extra = max(extra, n.endingOf(a.req, nil).Grace-stopGrace)
	}
	return extra
}

// AwaitEnds returns when all current attempts of the node have ended and the executors of remote attempts know which ends
// the server has, or when ctx ends.
func (n *Node) AwaitEnds(ctx context.Context) {
	for _, a := range n.attempts.all() {
		await(ctx, a.attendance.done)
	}
	recorded := make(chan struct{})
	go func() { n.attempts.recording.Wait(); close(recorded) }()
	await(ctx, recorded)
}

func await[T any](ctx context.Context, done <-chan T) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

package stack

import (
	"errors"
	"fmt"
	"time"
)

// closer stops a part. A part that exceeds its timeout is abandoned and ends with the process.
type closer struct {
	name    string
	timeout time.Duration
	stop    func() error
	// extra returns how much longer the part may take now. It is nil for most parts.
	extra func() time.Duration
}

const (
	// stopTimeout bounds the stop of all parts together.
	stopTimeout = 13 * time.Second
	// partStopTimeout bounds the stop of one part.
	partStopTimeout = 5 * time.Second
	// nodesStopTimeout bounds the stop of the nodes: a task gets 10 s between its stop signal and SIGKILL, unless it sets more.
	nodesStopTimeout = 11 * time.Second
	// deliveriesStopTimeout bounds the stop of the sender of notifications, which waits up to 10 s for deliveries in progress.
	deliveriesStopTimeout = 11 * time.Second
	// leastStopTimeout is what a part still gets after the others have used up the total time.
	leastStopTimeout = 200 * time.Millisecond
	// stopWarning is how long the stop of a part may take before it is logged.
	stopWarning = 5 * time.Second
)

// StopWithin sets the deadline for the stop of every part, unless an earlier one is set.
func (s *Stack) StopWithin(d time.Duration) {
	deadline := time.Now().Add(d)
	for {
		old := s.deadline.Load()
		if old != nil && old.Before(deadline) || s.deadline.CompareAndSwap(old, &deadline) {
			return
		}
	}
}

func (s *Stack) addCloser(name string, stop func() error) {
	s.closers = append(s.closers, closer{name: name, timeout: partStopTimeout, stop: stop})
}

// Stop drains the nodes, which has its own time limit, and stops every part. A part that exceeds its timeout or the
// deadline of all parts is abandoned and ends with the process. A second Stop is a no-op.
func (s *Stack) Stop() error {
	s.ignoreStart()
	if s.drain != nil {
		began := time.Now()
		_ = s.drain() // drain never fails
		s.drain = nil
		if deadline := s.deadline.Load(); deadline != nil {
			later := deadline.Add(time.Since(began))
			s.deadline.CompareAndSwap(deadline, &later)
		}
	}
	s.StopWithin(stopTimeout + s.ExtraGrace())
	var errs []error
	for len(s.closers) > 0 {
		c := s.closers[len(s.closers)-1]
		s.closers = s.closers[:len(s.closers)-1]
		slow := time.AfterFunc(stopWarning, func() { s.logger.Warn("still stopping", "part", c.name) })
		if err := s.stopPart(c); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.name, err))
		}
		slow.Stop()
	}
	return errors.Join(errs...)
}

func (s *Stack) stopPart(c closer) error {
	if c.extra != nil {
		c.timeout += c.extra()
	}
	limit := max(min(c.timeout, time.Until(*s.deadline.Load())), leastStopTimeout)
	stopped := make(chan error, 1)
	go func() { stopped <- c.stop() }()
	select {
	case err := <-stopped:
		return err
	case <-time.After(limit):
		return fmt.Errorf("it has not stopped within %s and will end with the process", limit.Round(time.Millisecond))
	}
}

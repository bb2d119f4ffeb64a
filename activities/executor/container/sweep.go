package container

import (
	"context"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
)

const (
	// sweepEvery is the interval between tries to remove the remaining containers.
	sweepEvery = time.Second
	// sweepSure is how long a container that the engine may still be creating must be
	// missing.
	sweepSure = time.Minute
	// sweepLast bounds the last try.
	sweepLast = 5 * time.Second
)

// sweeper removes containers that could not be removed when their attempts ended,
// because the engine was away.
type sweeper struct {
	e      *shared
	cancel context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	// left holds the containers to remove, by id or name.
	left map[string]*swept
	wake chan struct{}
}

type swept struct {
	// unsure reports that the engine may still be creating the container. missing is
	// when it was first found to be missing.
	unsure  bool
	missing time.Time
}

func startSweeper(e *shared) *sweeper {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sweeper{e: e, cancel: cancel, done: make(chan struct{}), left: map[string]*swept{}, wake: make(chan struct{}, 1)}
	go s.run(ctx)
	return s
}

// add schedules the removal of a container. unsure means that the engine may not have
// created it yet.
func (s *sweeper) add(container string, unsure bool) {
	s.mu.Lock()
	s.left[container] = &swept{unsure: unsure}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sweeper) run(ctx context.Context) {
	defer close(s.done)
	for {
		var again <-chan time.Time
		if s.any() {
			again = time.After(sweepEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			continue // pause before retrying a removal that has just failed
		case <-again:
			s.sweep(ctx)
		}
	}
}

func (s *sweeper) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.left) > 0
}

// sweep tries once to remove each remaining container.
func (s *sweeper) sweep(ctx context.Context) {
	s.mu.Lock()
	left := make(map[string]*swept, len(s.left))
	for container, entry := range s.left {
		left[container] = entry
	}
	s.mu.Unlock()
	ctx, done := s.e.engine.guard(ctx)
	defer done()
	for container, entry := range left {
		_, err := s.e.docker.ContainerInspect(ctx, container)
		switch {
		case err == nil:
			if err = s.e.removeNow(ctx, container); err == nil {
				s.e.logger.Info("removed a leftover container", "container", container)
			}
		case cerrdefs.IsNotFound(err):
			err = nil
			if entry.missing.IsZero() {
				entry.missing = time.Now()
			}
			if entry.unsure && time.Since(entry.missing) < sweepSure {
				continue
			}
		}
		if err == nil {
			s.mu.Lock()
			delete(s.left, container)
			s.mu.Unlock()
		}
	}
}

// close tries one last time. The next worker finds what is left by its labels when it
// starts.
func (s *sweeper) close() {
	s.cancel()
	<-s.done
	if !s.any() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepLast)
	defer cancel()
	s.sweep(ctx)
	if s.any() {
		s.e.logger.Warn("some containers could not be removed; the next worker with this name removes them")
	}
}

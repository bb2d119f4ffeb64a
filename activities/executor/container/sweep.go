package container

import (
	"context"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
)

const (
	// sweepEvery is how often containers are tried that could not be removed.
	sweepEvery = time.Second
	// sweepSure is how long a container that the engine may be making must be missing.
	sweepSure = 10 * time.Second
	// sweepLast bounds the last try.
	sweepLast = 5 * time.Second
)

// sweeper removes containers that could not be removed when their attempts ended, since
// the engine was away.
type sweeper struct {
	e      *shared
	cancel context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	// left are containers by id or name.
	left map[string]*swept
	wake chan struct{}
}

type swept struct {
	// unsure says that the engine may be making it, missing since when it is not there.
	unsure  bool
	missing time.Time
}

func startSweeper(e *shared) *sweeper {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sweeper{e: e, cancel: cancel, done: make(chan struct{}), left: map[string]*swept{}, wake: make(chan struct{}, 1)}
	go s.run(ctx)
	return s
}

// add has a container removed. unsure says that the engine may not have made it yet.
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
			continue // what has failed a moment ago has a pause first
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

// sweep tries once.
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
				s.e.logger.Info("a container was removed late", "container", container)
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

// close tries a last time. What is left then is found by its labels at the next start of
// a worker.
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
		s.e.logger.Warn("containers are left that could not be removed; the next worker of this name does it")
	}
}

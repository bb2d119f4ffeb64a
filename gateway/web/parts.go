package web

import (
	"context"
	"sync"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

const (
	// firstParts is how long a new view waits for all its parts.
	firstParts = 1500 * time.Millisecond
	// coalesceParts is the time in which changes of several parts are merged into one update.
	coalesceParts = 50 * time.Millisecond
	// partTimeout bounds reading a part.
	partTimeout = 20 * time.Second
)

// part is a piece of a view that is read independently, so that a slow or broken part does not delay the others.
type part struct {
	every time.Duration // minimum interval between reads
	load  func(ctx context.Context) (any, error)
}

// loadedPart is the latest result of a part.
type loadedPart struct {
	data     any // nil until the part has been read
	err      error
	isLoaded bool // whether a read has completed, with data or an error
}

// partsSource reads parts repeatedly, each at its own interval, and shows them together.
type partsSource struct {
	parts []part
	show  func(loaded []loadedPart) viewData

	cancel  context.CancelFunc // nil until started
	wg      sync.WaitGroup
	changed chan struct{}

	mu     sync.Mutex
	loaded []loadedPart
}

func newPartsSource(show func(loaded []loadedPart) viewData, parts ...part) *partsSource {
	return &partsSource{parts: parts, show: show, changed: make(chan struct{}, 1), loaded: make([]loadedPart, len(parts))}
}

func (s *partsSource) next(ctx context.Context) (viewData, error) {
	if s.cancel == nil {
		s.start(ctx)
	} else {
		select {
		case <-s.changed:
		case <-ctx.Done():
			return viewData{}, context.Cause(ctx)
		}
		if err := sleep(ctx, coalesceParts); err != nil {
			return viewData{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.changed:
	default:
	}
	for _, p := range s.loaded {
		if code := rpcerror.CodeOf(p.err); code == connect.CodeUnauthenticated {
			return viewData{}, p.err
		}
	}
	return s.show(s.loaded), nil
}

// start starts reading all parts and waits up to firstParts for the first read of each.
func (s *partsSource) start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	var first sync.WaitGroup
	for i := range s.parts {
		first.Add(1)
		s.wg.Go(func() { s.read(ctx, i, sync.OnceFunc(first.Done)) })
	}
	all := make(chan struct{})
	s.wg.Go(func() {
		first.Wait()
		close(all)
	})
	select {
	case <-all:
	case <-time.After(firstParts):
	case <-ctx.Done():
	}
}

// read reads a part repeatedly until ctx is cancelled. It calls looked after the first read.
func (s *partsSource) read(ctx context.Context, i int, looked func()) {
	defer looked()
	for {
		began := time.Now()
		look, cancel := context.WithTimeout(ctx, partTimeout)
		data, err := s.parts[i].load(look)
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.loaded[i] = loadedPart{data, err, true}
		s.mu.Unlock()
		looked()
		select {
		case s.changed <- struct{}{}:
		default:
		}
		if sleep(ctx, pauseAfter(time.Since(began), s.parts[i].every)) != nil {
			return
		}
	}
}

func (s *partsSource) close() {
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
}

package singleflight

import (
	"context"
	"sync"
)

// Group has pieces of work that take long and that several attempts need at a time. Its methods are safe for concurrent use.
// The zero value is ready.
type Group[T any] struct {
	mu       sync.Mutex
	underWay map[string]*sharedCall[T] // by key
}

// sharedCall is a piece of work that is under way.
type sharedCall[T any] struct {
	cancel  context.CancelFunc
	waiting map[chan string]struct{} // by the channel of each caller for lines
	done    chan struct{}            // closed when result and err are set
	result  T
	err     error
}

// linesAhead is how many lines of progress a caller may be behind; further ones are left out.
const linesAhead = 64

// Do does the work, or waits for the work of the same key that is under way, and calls notify with each line that the work says
// from now on. The end of ctx ends the waiting alone, and the work too if no other caller waits; Do returns only after
// the work in that case.
func (f *Group[T]) Do(ctx context.Context, key string, notify func(string), work func(ctx context.Context, say func(string)) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	fl, lines := f.join(key, work)
	for {
		select {
		case line := <-lines:
			notify(line)
			continue
		case <-fl.done:
		case <-ctx.Done():
			f.leave(key, fl, lines)
			return none, context.Cause(ctx)
		}
		for len(lines) > 0 {
			notify(<-lines)
		}
		return fl.result, fl.err
	}
}

// join joins the work of a key, which it starts when none is under way.
func (f *Group[T]) join(key string, work func(context.Context, func(string)) (T, error)) (*sharedCall[T], chan string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := make(chan string, linesAhead)
	if fl := f.underWay[key]; fl != nil {
		fl.waiting[lines] = struct{}{}
		return fl, lines
	}
	ctx, cancel := context.WithCancel(context.Background())
	fl := &sharedCall[T]{cancel: cancel, waiting: map[chan string]struct{}{lines: {}}, done: make(chan struct{})}
	if f.underWay == nil {
		f.underWay = map[string]*sharedCall[T]{}
	}
	f.underWay[key] = fl
	go func() {
		defer cancel()
		fl.result, fl.err = work(ctx, func(line string) { f.publish(fl, line) })
		f.mu.Lock()
		f.forget(key, fl)
		f.mu.Unlock()
		close(fl.done)
	}()
	return fl, lines
}

// publish sends a line to all callers that wait.
func (f *Group[T]) publish(fl *sharedCall[T], line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for lines := range fl.waiting {
		select {
		case lines <- line:
		default:
		}
	}
}

// leave ends the waiting of a caller, and the work if it was the last one.
func (f *Group[T]) leave(key string, fl *sharedCall[T], lines chan string) {
	f.mu.Lock()
	delete(fl.waiting, lines)
	last := len(fl.waiting) == 0
	if last {
		f.forget(key, fl)
	}
	f.mu.Unlock()
	if last {
		fl.cancel()
		<-fl.done
	}
}

// Waiting returns how many callers wait in all.
func (f *Group[T]) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, fl := range f.underWay {
		n += len(fl.waiting)
	}
	return n
}

// forget has the next caller of the key start anew.
func (f *Group[T]) forget(key string, fl *sharedCall[T]) {
	if f.underWay[key] == fl {
		delete(f.underWay, key)
	}
}

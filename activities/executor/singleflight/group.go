package singleflight

import (
	"context"
	"sync"
)

// Group shares long-running work among concurrent callers. Its methods are safe for concurrent use. The zero value is ready.
type Group[T any] struct {
	mu       sync.Mutex
	underWay map[string]*sharedCall[T] // by key
}

// sharedCall is a piece of work in progress.
type sharedCall[T any] struct {
	cancel  context.CancelFunc
	waiting map[chan string]struct{} // the progress channel of each waiting caller
	done    chan struct{}            // closed when result and err are set
	result  T
	err     error
}

// linesAhead is how many lines of progress a caller may fall behind; further lines are dropped for that caller.
const linesAhead = 64

// Do does the work, or waits for work in progress under the same key, and passes each line of progress from now on to notify.
// When ctx ends, Do stops waiting. If no other caller waits, Do also cancels the work and returns only after it has ended.
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

// join joins the work in progress under a key, or starts it.
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

// publish sends a line to all waiting callers.
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

// leave removes a waiting caller. It cancels the work and awaits its end if the caller was the last one.
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

// Waiting returns the number of waiting callers over all keys.
func (f *Group[T]) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, fl := range f.underWay {
		n += len(fl.waiting)
	}
	return n
}

// forget removes a call, so that the next caller of the key starts the work anew.
func (f *Group[T]) forget(key string, fl *sharedCall[T]) {
	if f.underWay[key] == fl {
		delete(f.underWay, key)
	}
}

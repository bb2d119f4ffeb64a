package container

import (
	"context"
	"sync"
)

// singleflight are pieces of work that take long and that several attempts want at a time,
// such as the pull of an image: each is done once. The zero value is ready.
type singleflight struct {
	mu       sync.Mutex
	underWay map[string]*sharedCall // by what they do
}

// sharedCall is a piece of work that is under way.
type sharedCall struct {
	cancel  context.CancelFunc
	waiting map[chan string]struct{} // by where each receives the progress
	done    chan struct{}            // closed when result and err are there
	result  []string
	err     error
}

// linesAhead is how many lines of progress one who waits may be behind; further ones
// are left out.
const linesAhead = 64

// do does the work, or waits for the one under way of the same key, and calls notify
// what it says from now on. The end of ctx ends the waiting alone, and the work too when
// no other caller waits; then do returns only after the work has.
func (f *singleflight) do(ctx context.Context, key string, notify func(string), work func(ctx context.Context, say func(string)) ([]string, error)) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
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
			return nil, context.Cause(ctx)
		}
		for len(lines) > 0 {
			notify(<-lines)
		}
		return fl.result, fl.err
	}
}

// join joins the work of a key, which it starts when none is under way.
func (f *singleflight) join(key string, work func(context.Context, func(string)) ([]string, error)) (*sharedCall, chan string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := make(chan string, linesAhead)
	if fl := f.underWay[key]; fl != nil {
		fl.waiting[lines] = struct{}{}
		return fl, lines
	}
	ctx, cancel := context.WithCancel(context.Background())
	fl := &sharedCall{cancel: cancel, waiting: map[chan string]struct{}{lines: {}}, done: make(chan struct{})}
	if f.underWay == nil {
		f.underWay = map[string]*sharedCall{}
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

// publish sends it to all that wait.
func (f *singleflight) publish(fl *sharedCall, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for lines := range fl.waiting {
		select {
		case lines <- line:
		default:
		}
	}
}

// leave ends one's waiting, and the work when it was the last one's.
func (f *singleflight) leave(key string, fl *sharedCall, lines chan string) {
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

// forget has the next who wants the same start anew.
func (f *singleflight) forget(key string, fl *sharedCall) {
	if f.underWay[key] == fl {
		delete(f.underWay, key)
	}
}

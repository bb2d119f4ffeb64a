package shell

import (
	"os"
	"sync"

	"switchyard/activities/executor"
)

// beside tracks the programs that callers of Enter run beside the attempt's own. The zero value is ready.
type beside struct {
	mu      sync.Mutex
	closed  bool
	closing chan struct{}
	running sync.WaitGroup
}

// start starts a program with begin, unless the attempt is ending. The caller calls done once for each started program.
func (b *beside) start(begin func() (*os.Process, error)) (*os.Process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, executor.ErrNotRunning
	}
	process, err := begin()
	if err == nil {
		b.running.Add(1)
	}
	return process, err
}

func (b *beside) done() { b.running.Done() }

// ending returns a channel that is closed when the programs must end with the attempt.
func (b *beside) ending() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing == nil {
		b.closing = make(chan struct{})
		if b.closed {
			close(b.closing)
		}
	}
	return b.closing
}

// close prevents further starts, and tells the running programs to end.
func (b *beside) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.closing != nil {
		close(b.closing)
	}
}

// wait returns when all programs have ended. It is called after close.
func (b *beside) wait() { b.running.Wait() }

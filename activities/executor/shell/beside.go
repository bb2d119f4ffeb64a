package shell

import (
	"os"
	"sync"

	"switchyard/activities/executor"
)

// beside are the programs that run beside that of an attempt, for those who have entered it. The zero value is ready.
type beside struct {
	mu      sync.Mutex
	closed  bool
	closing chan struct{}
	running sync.WaitGroup
}

// start starts a program by begin, unless the attempt is ending. Each program that has started is followed by one done.
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

// ending returns a channel that is closed when the programs are to end with the attempt.
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

// close lets no other program start, and has those that run end.
func (b *beside) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.closing != nil {
		close(b.closing)
	}
}

// wait returns when all programs have ended, after close.
func (b *beside) wait() { b.running.Wait() }

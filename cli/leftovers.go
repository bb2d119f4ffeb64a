package cli

import (
	"os"
	"sync"
	"time"
)

// removeTimeout bounds what a process that should end at once does before that.
const removeTimeout = time.Second

// leftovers are private folders that go with the process. It is safe for
// concurrent use.
type leftovers struct {
	mu   sync.Mutex
	dirs []string
}

// add notes a folder.
func (l *leftovers) add(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = append(l.dirs, dir)
}

// remove removes the folders, as far as that is done quickly. What still runs
// may be using them, so that its errors mean nothing.
func (l *leftovers) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, dir := range l.dirs {
			_ = os.RemoveAll(dir)
		}
	}()
	select {
	case <-done:
	case <-time.After(removeTimeout):
	}
}

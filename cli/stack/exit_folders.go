package stack

import (
	"os"
	"sync"
	"time"
)

// removeTimeout bounds the removal of folders by a process that has to exit immediately.
const removeTimeout = time.Second

// ExitFolders holds private folders that a process removes when it has to exit immediately. Its methods are safe for
// concurrent use.
type ExitFolders struct {
	mu   sync.Mutex
	dirs []string
}

// Add registers a folder for removal.
func (l *ExitFolders) Add(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = append(l.dirs, dir)
}

// Remove removes the folders, best effort, within a second. It ignores errors because running parts may still use the
// folders.
func (l *ExitFolders) Remove() {
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

package stack

import (
	"os"
	"sync"
	"time"
)

// removeTimeout bounds the removal of folders by a process that has to end at once.
const removeTimeout = time.Second

// ExitFolders are private folders that a process removes when it has to end at
// once. Its methods are safe for concurrent use.
type ExitFolders struct {
	mu   sync.Mutex
	dirs []string
}

// Add adds a folder.
func (l *ExitFolders) Add(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = append(l.dirs, dir)
}

// Remove removes the folders within a second, as far as possible. Parts that still
// run may use the folders, so errors are ignored.
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

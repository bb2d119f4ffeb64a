package stack

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	folderPrefix = "switchyard-"
	lockName     = "lock"
	// minLockAge is the age of a lock after which its folder may be removed as abandoned. The owner creates the file
	// before it locks it.
	minLockAge = 10 * time.Second
)

// privateFolder is a folder that is removed when the stack stops. The process holds the lock file in it as long as it
// lives, so that another process can distinguish a folder in use from the folder of a killed process.
type privateFolder struct {
	dir  string
	lock io.Closer // nil if files cannot be locked

	removing sync.WaitGroup
	stopped  chan struct{}
}

// newPrivateFolder creates a private folder in parent.
func newPrivateFolder(parent string) (*privateFolder, error) {
	dir, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("create a private folder: %w", err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("lock the private folder: %w", err)
	}
	return &privateFolder{dir: dir, lock: lock, stopped: make(chan struct{})}, nil
}

// removeAbandoned removes, in the background and best effort, the sibling folders that ended processes of this user
// have left. close waits for it.
func (s *privateFolder) removeAbandoned() {
	s.removing.Go(func() {
		siblings, _ := filepath.Glob(filepath.Join(filepath.Dir(s.dir), folderPrefix+"*"))
		for _, dir := range siblings {
			select {
			case <-s.stopped:
				return
			default:
			}
			if dir != s.dir {
				removeAbandoned(dir, time.Now().Add(-minLockAge))
			}
		}
	})
}

// close removes the folder. It releases the lock last, so that no other process removes the folder at the same time.
func (s *privateFolder) close() error {
	close(s.stopped)
	s.removing.Wait()
	err := os.RemoveAll(s.dir)
	if s.lock != nil {
		_ = s.lock.Close() // the file is empty, so an error loses nothing
	}
	return err
}

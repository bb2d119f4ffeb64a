package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	scratchPrefix = "switchyard-"
	scratchLock   = "lock"
	// scratchMinAge is how old the lock of a folder is before the folder may be
	// swept: its owner makes the file first and locks it then.
	scratchMinAge = 10 * time.Second
)

// scratch is a private folder that goes with the process. Its file lock is
// locked for as long as the process lives, so that another process can tell a
// folder in use from one that a killed process has left.
type scratch struct {
	dir  string
	lock io.Closer // nil where files cannot be locked

	sweeping sync.WaitGroup
	stopped  chan struct{}
}

// openScratch makes a private folder in parent.
func openScratch(parent string) (*scratch, error) {
	dir, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a private folder: %w", err)
	}
	lock, err := holdFolder(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("lock the private folder: %w", err)
	}
	return &scratch{dir: dir, lock: lock, stopped: make(chan struct{})}, nil
}

// sweep removes in the background, as far as that is possible, the folders
// beside this one that processes of this user have left. close waits for it.
func (s *scratch) sweep() {
	s.sweeping.Go(func() {
		siblings, _ := filepath.Glob(filepath.Join(filepath.Dir(s.dir), scratchPrefix+"*"))
		for _, dir := range siblings {
			select {
			case <-s.stopped:
				return
			default:
			}
			if dir != s.dir {
				removeAbandoned(dir, time.Now().Add(-scratchMinAge))
			}
		}
	})
}

// close removes the folder. The lock goes last, so that nobody sweeps what is
// being removed.
func (s *scratch) close() error {
	close(s.stopped)
	s.sweeping.Wait()
	err := os.RemoveAll(s.dir)
	if s.lock != nil {
		_ = s.lock.Close() // nothing was written
	}
	return err
}

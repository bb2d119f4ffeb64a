package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"switchyard/activities/filelock"
)

// lockFolder is the folder of name locks in the folder for temporary files.
const lockFolder = "switchyard-nodes"

// HeldNameError says that another process of this machine is the node of that name.
type HeldNameError struct {
	// Name of the node.
	Name string
	// PID of the process; 0: unknown.
	PID int
}

// Error names the process, where that is known.
func (e *HeldNameError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("node %s runs on this machine already, in %s: choose another name, or stop that one", e.Name, by)
}

// NameLock holds the name of a node on this machine: while it is held, no other
// process gets it, and whoever had it before is dead. The kernel gives it up
// with the process, however that ends.
type NameLock struct{ lock *filelock.Lock }

// LockName takes the lock for a node's name in the folder dir; empty: one for
// the whole machine, in the folder for temporary files, that all users share.
//
// The error is a *HeldNameError when a live process has the name. Any other
// error (the folder cannot be written, or the lock file is another user's, which
// is left alone because its owner may be alive) says nothing about other
// processes: the worker can continue, but cannot say that it is the only one.
func LockName(dir, name string) (*NameLock, error) {
	// The name becomes a file name.
	if name == "" || Name(name) != name {
		return nil, fmt.Errorf("lock node name %q: not a node name", name)
	}
	dir, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("lock node name %s: %w", name, err)
	}
	lock, err := filelock.Take(filepath.Join(dir, name+".lock"))
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, &HeldNameError{Name: name, PID: held.PID}
	}
	if err != nil {
		return nil, fmt.Errorf("lock node name %s: %w", name, err)
	}
	return &NameLock{lock}, nil
}

// lockDir makes the folder. The shared one lets everybody in and, like the
// folder for temporary files itself, and that no user removes another's files.
func lockDir(dir string) (string, error) {
	if dir != "" {
		return dir, os.MkdirAll(dir, 0o700)
	}
	dir = filepath.Join(os.TempDir(), lockFolder)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		// Not by Mkdir, whose mode the umask cuts.
		return dir, os.Chmod(dir, os.ModeSticky|0o777)
	}
	// A user may have put a link there that leads elsewhere.
	if info, statErr := os.Lstat(dir); statErr == nil && info.IsDir() {
		return dir, nil
	}
	return "", err
}

// Release gives the name up. A second Release does nothing. The file goes too:
// every fleet that a test or a run makes has names of its own.
func (l *NameLock) Release() error { return l.lock.Remove() }

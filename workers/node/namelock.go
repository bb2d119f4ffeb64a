package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"switchyard/activities/filelock"
)

// lockFolder is the folder for name locks within the folder for temporary files.
const lockFolder = "switchyard-nodes"

// HeldNameError means that another process of this machine uses the node name.
type HeldNameError struct {
	// Name is the name of the node.
	Name string
	// PID is the process id, or 0 if unknown.
	PID int
}

// Error names the process, if it is known.
func (e *HeldNameError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("node %s is running on this machine already, in %s: choose another name or stop that worker", e.Name, by)
}

// NameLock holds a node name on this machine. While it is held, no other process can get the name,
// and the previous holder has ended. The kernel releases the lock when the process ends, for
// whatever reason.
type NameLock struct{ lock *filelock.Lock }

// LockName locks a node name in the folder dir. If dir is "", it uses a folder for the whole
// machine below the folder for temporary files, which all users share.
//
// LockName returns a *HeldNameError if a live process has the name. Any other error says nothing
// about other processes: the folder may not be writable, or the lock file may belong to another
// user, and then LockName leaves it alone because its owner may be alive. After such an error the
// worker can continue, but cannot be sure that the name is unique.
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

// lockDir creates the folder. All users can create files in the shared folder, and, as in the
// folder for temporary files itself, no user can remove the files of another.
func lockDir(dir string) (string, error) {
	if dir != "" {
		return dir, os.MkdirAll(dir, 0o700)
	}
	dir = filepath.Join(os.TempDir(), lockFolder)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		// Mkdir cannot set this mode, because the umask restricts it.
		return dir, os.Chmod(dir, os.ModeSticky|0o777)
	}
	// Another user may have placed a symbolic link there.
	if info, statErr := os.Lstat(dir); statErr == nil && info.IsDir() {
		return dir, nil
	}
	return "", err
}

// Release releases the name and removes the lock file, because every fleet of a test or a run has
// names of its own. A second Release is a no-op.
func (l *NameLock) Release() error { return l.lock.Remove() }

package filelock

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// permissions are those of a lock file that Take makes: other users
// must not take the lock, because its holder keeps every other process out.
const permissions = 0o600

// attempts is how often Take continues when the file is taken away under its hands.
const attempts = 100

// HeldError means that the lock is held: by another process, or an earlier Take in this one.
type HeldError struct {
	// Path of the lock file.
	Path string
	// PID of the process that has the lock; 0: unknown.
	PID int
}

// Error names the process, where that is known.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Lock is a lock that is held. It is held until Release or the end of the
// process: unlike an os.File it is not given up when it becomes garbage.
type Lock struct {
	// file is a bare descriptor or handle, because an os.File is closed when it becomes garbage.
	file    file
	path    string
	release sync.Once
	err     error
}

// Take takes the lock on the file at path, which it makes if need be, and
// writes the id of this process into it for people to read. It does not wait:
// when the lock is held the error is a *HeldError. A symbolic link is
// refused, since a folder like /tmp may hold those of any user.
//
// When the file is removed meanwhile, the lock is taken on the one that is
// there then, so that no two processes have locked different files of one name.
func Take(path string) (*Lock, error) {
	for range attempts {
		f, err := open(path)
		if err != nil {
			return nil, fmt.Errorf("open lock file %s: %w", path, err)
		}
		held, err := f.lock()
		switch {
		case err != nil:
			_ = f.close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case held:
			_ = f.close()
			return nil, &HeldError{Path: path, PID: holder(path)}
		case !f.is(path):
			_ = f.close()
			continue
		}
		// The process id only helps a person; the lock holds without it.
		f.write(fmt.Appendln(nil, os.Getpid()))
		return &Lock{file: f, path: path}, nil
	}
	return nil, fmt.Errorf("lock %s: something keeps removing the file", path)
}

// holder returns the process id in the file, or 0.
func holder(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// Release gives up the lock and leaves the file. A second Release or Remove does
// nothing and returns what the first did.
func (l *Lock) Release() error {
	l.release.Do(func() { l.err = l.file.close() })
	return l.err
}

// Remove gives up the lock and removes the file. It is for files of which there
// would be more and more, and fails when the file may not be removed; the lock is given up then too.
func (l *Lock) Remove() error {
	l.release.Do(func() { l.err = l.file.remove(l.path) })
	return l.err
}

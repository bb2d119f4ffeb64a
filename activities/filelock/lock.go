package filelock

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// permissions is the mode of lock files that Take creates. Other users must not be able to take the
// lock, because its holder keeps every other process out.
const permissions = 0o600

// attempts bounds how often Take retries when another process removes the file.
const attempts = 100

// HeldError means that the lock is held by another process, or by an earlier Take in this one.
type HeldError struct {
	// Path is the path of the lock file.
	Path string
	// PID is the process that holds the lock, or 0 if unknown.
	PID int
}

// Error names the process that holds the lock, if it is known.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Lock is a held lock. It is held until Release or Remove is called or the process ends. Unlike an
// os.File, it is not released by the garbage collector.
type Lock struct {
	// file is a bare descriptor or handle, because the garbage collector closes an os.File.
	file    file
	path    string
	release sync.Once
	err     error
}

// Take locks the file at path, which it creates if necessary, and writes the id of this process into
// the file for people to read. It does not wait: if the lock is held, it returns a *HeldError. It
// refuses symbolic links, because a folder like /tmp may contain links of any user.
//
// If the file is removed concurrently, Take locks the file that replaces it, so that two processes
// never hold locks on different files of the same name.
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
		// The process id only helps people; the lock holds without it.
		f.write(fmt.Appendln(nil, os.Getpid()))
		return &Lock{file: f, path: path}, nil
	}
	return nil, fmt.Errorf("lock %s: the file was removed after every attempt to lock it", path)
}

// holder returns the process id in the lock file, or 0 if it cannot be read.
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

// Release releases the lock and leaves the file in place. A later Release or Remove is a no-op and
// returns the same error.
func (l *Lock) Release() error {
	l.release.Do(func() { l.err = l.file.release() })
	return l.err
}

// Remove releases the lock and removes the file. It is for files that would otherwise accumulate. If
// the file cannot be removed, Remove returns an error, but the lock is released.
func (l *Lock) Remove() error {
	l.release.Do(func() { l.err = l.file.remove(l.path) })
	return l.err
}

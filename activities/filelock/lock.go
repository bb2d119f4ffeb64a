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
	note    string
	release sync.Once
	err     error
}

// Take locks the file at path, which it creates if necessary, and writes the id of this process into
// the file for people to read. It keeps the note of the previous holder. It does not wait: if the lock is held, it returns a *HeldError. It
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
			pid, _ := content(path)
			return nil, &HeldError{Path: path, PID: pid}
		case !f.is(path):
			_ = f.close()
			continue
		}
		_, note := content(path)
		l := &Lock{file: f, path: path}
		l.SetNote(note)
		return l, nil
	}
	return nil, fmt.Errorf("lock %s: the file was removed after every attempt to lock it", path)
}

// Holder returns the process that the lock file at path names, or 0 if the file names none. That process holds
// the lock, or held it last.
func Holder(path string) (pid int) {
	pid, _ = content(path)
	return pid
}

// content returns the process id and the note in the lock file. A missing process id is 0, and a missing note is "".
func content(path string) (pid int, note string) {
	text, _ := os.ReadFile(path) // a file that cannot be read says nothing
	first, note, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, ""
	}
	return pid, strings.TrimSuffix(note, "\n")
}

// Note returns the note in the file, or "" for a file without one. Before SetNote, the note is that of the previous holder.
func (l *Lock) Note() string { return l.note }

// SetNote writes a note into the file, by which the next holder can tell whose death the lock proves. Errors are ignored: without
// the note, the lock proves less. The caller must not call SetNote after Release or Remove.
func (l *Lock) SetNote(note string) {
	l.note = note
	l.file.write(fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), note))
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

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"switchyard/activities/filelock"
	"switchyard/activities/statedir"
)

// lockFolder is the folder for name locks within the state folder of the machine.
const lockFolder = "locks"

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

// NameLock holds a node name on this machine. While it is held, no other process with the same state folder can get the name. The
// kernel releases the lock when the process ends, for whatever reason.
//
// The lock alone does not prove that a registered holder has ended, because that one may use another state folder: it may belong
// to another user, run in a container, or on a machine of which this one is a copy. Only the process that wrote its identity into
// the file of this lock has certainly ended.
type NameLock struct {
	*filelock.Lock
	dead []string
}

// IsDead reports whether the lock proves that the process of an incarnation has ended: an earlier holder noted it, and it may have
// been the registered one.
func (l *NameLock) IsDead(incarnation string) bool { return slices.Contains(l.dead, incarnation) }

// NoteAttempt notes an incarnation of this process before its registration is requested. The earlier ones stay in the note, since the
// request may not arrive.
func (l *NameLock) NoteAttempt(incarnation string) {
	l.SetNote(strings.Join(append(slices.Clone(l.dead), incarnation), " "))
}

// NoteRegistered notes that an incarnation of this process has been registered, which ends all earlier ones.
func (l *NameLock) NoteRegistered(incarnation string) {
	l.dead = nil
	l.SetNote(incarnation)
}

// NoteRefused takes back NoteAttempt: the incarnation is not registered.
func (l *NameLock) NoteRefused() { l.SetNote(strings.Join(l.dead, " ")) }

// LockName locks a node name in the folder dir. If dir is "", it uses the state folder of this machine.
//
// LockName returns a *HeldNameError if a live process has the name. Any other error says nothing about other processes. After such
// an error the worker can continue, but cannot be sure that the name is unique.
func LockName(dir, name string) (*NameLock, error) {
	// The name becomes a file name.
	if name == "" || Name(name) != name {
		return nil, fmt.Errorf("lock node name %q: not a node name", name)
	}
	if dir == "" {
		state, err := statedir.Dir()
		if err != nil {
			return nil, fmt.Errorf("lock node name %s: %w", name, err)
		}
		dir = filepath.Join(state, lockFolder)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock node name %s: %w; XDG_STATE_HOME names another folder", name, err)
	}
	lock, err := filelock.Take(filepath.Join(dir, name+".lock"))
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, &HeldNameError{Name: name, PID: held.PID}
	}
	if err != nil {
		return nil, fmt.Errorf("lock node name %s: %w", name, err)
	}
	return &NameLock{lock, strings.Fields(lock.Note())}, nil
}

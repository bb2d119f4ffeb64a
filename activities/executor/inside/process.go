package inside

import (
	"errors"
	"io/fs"

	"switchyard/activities/executor"
)

// Process is a process of this machine that can be entered. Its methods may be called from several goroutines at once.
type Process struct {
	// PID is its number. Start distinguishes it from a later process with that number: it is when it has started, in clock
	// ticks, as procfs.Process.Start. With 0 the process is whichever has the number when a method is called.
	PID, Start int
	// UID, GID and Groups are who reads and writes its files, as the user namespace of the process numbers them.
	UID, GID uint32
	Groups   []uint32
	// Dir is where relative paths begin; "": at /.
	Dir string
}

// As returns the process as another user of it enters it.
func (p Process) As(u User) Process {
	p.UID, p.GID, p.Groups = u.UID, u.GID, u.Groups
	return p
}

// refuse returns a Refusal.
func refuse(text string) error { return &executor.Refusal{Text: text} }

// Error is why files could not be read or written. It is one line with the path. It wraps fs.ErrNotExist, fs.ErrPermission,
// fs.ErrInvalid for a bad archive, or nothing of the kind.
type Error struct {
	// Text is the whole message.
	Text string
	kind error
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns which kind of error it is, or nil.
func (e *Error) Unwrap() error { return e.kind }

// kinds are the kinds of an Error as they are written between the helper and the worker.
var kinds = map[string]error{"not_exist": fs.ErrNotExist, "permission": fs.ErrPermission, "invalid": fs.ErrInvalid}

// kindOf returns the name of the kind of an error, or "".
func kindOf(err error) string {
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			return name
		}
	}
	return ""
}

package inside

import (
	"errors"
	"io/fs"

	"switchyard/activities/executor"
)

// Process is a process of this machine that can be entered. Its methods are safe for concurrent use.
type Process struct {
	// PID is the number of the process. Start tells it from a later process with the same PID: it is the start time in
	// clock ticks, as in procfs.Process.Start. If Start is 0, methods act on whichever process has the PID when they are
	// called.
	PID, Start int
	// UID, GID and Groups identify the user who reads and writes the files, as numbered in the user namespace of the
	// process.
	UID, GID uint32
	Groups   []uint32
	// Dir is the directory where relative paths begin, or "" for the root directory.
	Dir string
}

// As returns the process as seen by another user.
func (p Process) As(u User) Process {
	p.UID, p.GID, p.Groups = u.UID, u.GID, u.Groups
	return p
}

// refuse returns an *executor.Refusal with a text.
func refuse(text string) error { return &executor.Refusal{Text: text} }

// Error explains why files could not be read or written, in one line that names the path. It wraps fs.ErrNotExist,
// fs.ErrPermission, fs.ErrInvalid for a bad archive, or none of these.
type Error struct {
	// Text is the whole message.
	Text string
	kind error
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the kind of the error, or nil.
func (e *Error) Unwrap() error { return e.kind }

// kinds maps the names that the helper sends to the worker to the kinds of an Error.
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

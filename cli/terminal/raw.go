package terminal

import (
	"os"
	"sync"

	"golang.org/x/term"
)

// Raw is a terminal in raw mode: each key, including Ctrl-C, goes to the program unchanged.
type Raw struct {
	fd      int
	before  *term.State
	once    sync.Once
	release func()
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// MakeRaw puts a terminal into raw mode until Restore. A signal that would end the process at once first restores the
// terminal.
func MakeRaw(f *os.File) (*Raw, error) {
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	r := &Raw{fd: int(f.Fd()), before: before}
	r.release = onFatalSignal(r.undo)
	return r, nil
}

// Restore ends raw mode. It is idempotent and safe for concurrent use.
func (r *Raw) Restore() {
	if r == nil {
		return
	}
	r.undo()
	r.once.Do(r.release)
}

// undo restores the previous mode. An error means that the terminal has gone, so it is ignored.
func (r *Raw) undo() { _ = term.Restore(r.fd, r.before) }

package exit

import (
	"context"
	"errors"
	"fmt"
)

// Exit codes of the command line.
const (
	// CodeDone means that the command did what it was asked to do.
	CodeDone = 0
	// CodeNotDone means that the run did not complete, or is in a state that does not allow the request.
	CodeNotDone = 1
	// CodeUsage means bad usage or a bad definition.
	CodeUsage = 2
	// CodeSystem means that the system could not be reached, or broke.
	CodeSystem = 3
	// CodeNotAllowed means that the user may not do this.
	CodeNotAllowed = 4
	// CodeInterrupted means that a signal ended the command; a run of its own is cancelled first.
	CodeInterrupted = 130
	// CodeLost means that a session with a program was left, or its connection lost, before the program's exit code came. A
	// session that ends as it should has that exit code.
	CodeLost = 255
)

// ErrInterrupted is the cause of the end of a command's context after a signal.
var ErrInterrupted = errors.New("interrupted")

// ErrHungUp is the interruption by the end of the terminal.
var ErrHungUp = fmt.Errorf("hung up: %w", ErrInterrupted)

// Error is an error with an exit code. Any other error of a command counts as a
// broken system.
type Error struct {
	Code int
	Err  error  // nil if everything has been printed already
	Hint string // what the user can do about it, or ""
}

// Error returns the text of the error below.
func (f *Error) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit code %d", f.Code)
	}
	return f.Err.Error()
}

// Unwrap returns the error below, or nil if there is none.
func (f *Error) Unwrap() error { return f.Err }

// Usagef returns an error about what the user typed.
func Usagef(format string, args ...any) error {
	return &Error{Code: CodeUsage, Err: fmt.Errorf(format, args...)}
}

// Silent returns an error that sets the exit code and prints nothing.
func Silent(code int) error { return &Error{Code: code} }

// CodeOf returns the exit code for err, which a command with the context ctx returned.
func CodeOf(ctx context.Context, err error) int {
	if err == nil {
		return CodeDone
	}
	code := CodeSystem
	if f, ok := errors.AsType[*Error](err); ok {
		code = f.Code
	}
	if code == CodeSystem && errors.Is(context.Cause(ctx), ErrInterrupted) {
		return CodeInterrupted // the signal caused the failure
	}
	return code
}

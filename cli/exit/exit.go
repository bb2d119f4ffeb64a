package exit

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes of the command line.
const (
	// CodeDone means that the command did what it was asked to do.
	CodeDone = 0
	// CodeNotDone means that the run did not complete, or is in a state that does not allow the request.
	CodeNotDone = 1
	// CodeUsage means bad usage or a bad definition.
	CodeUsage = 2
	// CodeSystem means that the system was unreachable or failed.
	CodeSystem = 3
	// CodeNotAllowed means that the user lacks the permission.
	CodeNotAllowed = 4
	// CodeInterrupted means that a signal ended the command, which first cancelled any run of its own.
	CodeInterrupted = 130
	// CodeLost means that a session with a program was left, or its connection lost, before the program's exit code
	// arrived. A session that ends normally has the program's exit code.
	CodeLost = 255
)

// ErrInterrupted is the cause that ends the context of a command after a signal.
var ErrInterrupted = errors.New("interrupted")

// ErrHungUp is the interruption that follows the loss of the terminal.
var ErrHungUp = fmt.Errorf("hung up: %w", ErrInterrupted)

// Error is an error with an exit code. Any other error of a command counts as a system failure.
type Error struct {
	Code int
	Err  error  // nil if everything has already been printed
	Hint string // remedy for the user, or ""
}

// Error returns the text of the wrapped error.
func (f *Error) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit code %d", f.Code)
	}
	return f.Err.Error()
}

// Unwrap returns the wrapped error, or nil if there is none.
func (f *Error) Unwrap() error { return f.Err }

// Usagef returns an error about the user's input.
func Usagef(format string, args ...any) error {
	return &Error{Code: CodeUsage, Err: fmt.Errorf(format, args...)}
}

// Silent returns an error that sets the exit code and prints nothing.
func Silent(code int) error { return &Error{Code: code} }

// CodeOf returns the exit code for err, which a command that ran with ctx returned.
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

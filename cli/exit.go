package cli

import (
	"context"
	"errors"
	"fmt"
)

// Exit codes.
const (
	exitDone        = 0
	exitNotDone     = 1   // the run did not complete
	exitUsage       = 2   // bad usage or definition
	exitSystem      = 3   // the system could not be reached or broke
	exitNotAllowed  = 4   // not allowed
	exitInterrupted = 130 // interrupted; a run of our own is cancelled first
)

// errInterrupted is why the context of a command is done after a signal.
var errInterrupted = errors.New("interrupted")

// errHungUp is the interruption by the end of the terminal.
var errHungUp = fmt.Errorf("hung up: %w", errInterrupted)

// failure is an error that knows its exit code. Whatever a command returns that
// is none counts as a broken system.
type failure struct {
	code int
	err  error  // nil: everything has been said already
	hint string // what to do about it; may be empty
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// usageError is a fault in what was typed.
func usageError(format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// silent ends with a code when everything has been said.
func silent(code int) error { return &failure{code: code} }

// codeOf is the exit code for an error of a command whose context is ctx.
func codeOf(ctx context.Context, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitSystem
	if f, ok := errors.AsType[*failure](err); ok {
		code = f.code
	}
	if code == exitSystem && errors.Is(context.Cause(ctx), errInterrupted) {
		return exitInterrupted // what broke broke because of that
	}
	return code
}

package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"switchyard/activities/executor"
)

// startError classifies the error of starting a program: an *executor.StartError
// for a fault of the task, any other error for one of the node.
func startError(name string, err error) error {
	code := codeCannotRun
	switch {
	case errors.Is(err, syscall.E2BIG):
		return executor.TooLongError(shorten(name))
	case errors.Is(err, fs.ErrNotExist):
		code = codeNotFound
	case isTaskFault(err):
	default:
		return fmt.Errorf("start %s: %w", name, err)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		err = fmt.Errorf("%s: %w", shorten(name), errno)
	}
	return &executor.StartError{ExitCode: code, Err: err}
}

// shorten truncates a command, which may be a whole script, for an error
// message.
func shorten(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	return name[:most] + "..."
}

package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"switchyard/workflows/names"
)

// Errors that the methods of a Registry return, for errors.Is.
var (
	// ErrUnknown means that no node has that name.
	ErrUnknown = errors.New("unknown node")
	// ErrState means that the state of the node does not allow the request.
	ErrState = errors.New("wrong state")
	// ErrTaken means that a live worker has the name.
	ErrTaken = errors.New("name is taken")
	// ErrOutdated means that the entry was created by a version that does not know the request.
	ErrOutdated = errors.New("outdated entry")
	// ErrNoControl means that no control process answered in time.
	ErrNoControl = errors.New("no control process")
)

// Error is the refusal of a request that was understood. Its text is for people.
type Error struct {
	// Kind is one of the errors above.
	Kind    error
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns Kind.
func (e *Error) Unwrap() error { return e.Kind }

// IsRefusal reports whether an error means that the entry of the node has answered a request and has not done what it asks for.
func IsRefusal(err error) bool {
	return errors.Is(err, ErrTaken) || errors.Is(err, ErrState) || errors.Is(err, ErrOutdated)
}

// translate converts an error that Temporal returned for a node's workflow to one of the errors
// above, and wraps any other error.
func translate(ctx context.Context, node string, err error) error {
	if err == nil {
		return nil
	}
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return &Error{ErrUnknown, fmt.Sprintf("there is no node %q", node)}
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		switch {
		case app.Type() == names.TakenError:
			return &Error{ErrTaken, app.Message()}
		case app.Type() == names.StateError:
			return &Error{ErrState, app.Message()}
		// The SDK returns this text for a workflow without the handler, and no error type of its
		// own.
		case strings.Contains(app.Message(), "unknown update"):
			return &Error{ErrOutdated, fmt.Sprintf("node %s was registered by an older version; restart its worker", node)}
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{ErrNoControl, fmt.Sprintf("no control process answered for node %s; is a gateway running?", node)}
	}
	return fmt.Errorf("node %s: %w", node, err)
}

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

// What errors of a Registry are about, for errors.Is.
var (
	// ErrUnknown: there is no node of that name.
	ErrUnknown = errors.New("unknown node")
	// ErrState: the node is in a state that does not allow it.
	ErrState = errors.New("wrong state")
	// ErrTaken: a live worker has the name.
	ErrTaken = errors.New("name is taken")
	// ErrOutdated: the entry was opened by a version that knows no such request.
	ErrOutdated = errors.New("outdated entry")
	// ErrNoControl: no control process answered in time.
	ErrNoControl = errors.New("no control process")
)

// Error is a request that was understood and refused. Its text is for people.
type Error struct {
	// Kind is one of the errors above.
	Kind    error
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// translate makes one of the errors above of what Temporal said of a node's
// workflow; anything else stays what it is.
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
		// The SDK answers so for a workflow without the handler, and gives it no type of its own.
		case strings.Contains(app.Message(), "unknown update"):
			return &Error{ErrOutdated, fmt.Sprintf("node %s was registered by an older version; restart its worker", node)}
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{ErrNoControl, fmt.Sprintf("no control process answered for node %s; is a gateway running?", node)}
	}
	return fmt.Errorf("node %s: %w", node, err)
}

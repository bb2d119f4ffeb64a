package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/environments"
	v1 "switchyard/proto/switchyard/v1"
)

// Environments publishes or discards archives that nodes have stored. Its activities are idempotent.
type Environments struct{ Library *environments.Library }

// incompleteTries bounds the attempts to wait for parts of an archive that may still be in a node's spool. They take some
// minutes.
const incompleteTries = 60

// notKept is the error type of an archive that can never be kept.
const notKept = "EnvironmentNotKept"

// Keep publishes an environment with a stored archive under its name, and returns it as ready. A non-retryable error
// tells people why that is impossible.
func (e Environments) Keep(ctx context.Context, stored *v1.Environment) (*v1.Environment, error) {
	kept, err := e.Library.Keep(ctx, stored)
	switch {
	case errors.Is(err, environments.ErrExists):
		err = fmt.Errorf("another environment has taken the name %s in the meantime; set replace to replace it with a newer version", stored.GetName())
	case errors.Is(err, environments.ErrIncomplete) && activity.GetInfo(ctx).Attempt > incompleteTries:
		err = fmt.Errorf("node %s has not stored all parts of environment %s: %w", stored.GetNode(), stored.GetName(), err)
	case errors.Is(err, environments.ErrNotReserved):
	default:
		return kept, err
	}
	return nil, temporal.NewNonRetryableApplicationError(err.Error(), notKept, nil)
}

// Discard removes the archive of an environment that did not become ready, if there is one.
func (e Environments) Discard(ctx context.Context, given *v1.Environment) error {
	return e.Library.DeleteArchive(ctx, given.GetArchive())
}

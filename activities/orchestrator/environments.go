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

// Environments gives archives that nodes have stored their names. Its activities may be done twice.
type Environments struct{ Library *environments.Library }

// incompleteTries is how often the parts of an archive are waited for that a node may have in its spool: some minutes.
const incompleteTries = 60

// notKept is the type of the errors of archives that will never be kept.
const notKept = "EnvironmentNotKept"

// Keep has an environment whose archive is stored take its name, and returns it as it is ready. An error that is not retried says for
// people why it cannot.
func (e Environments) Keep(ctx context.Context, stored *v1.Environment) (*v1.Environment, error) {
	kept, err := e.Library.Keep(ctx, stored)
	switch {
	case errors.Is(err, environments.ErrExists):
		err = fmt.Errorf("another environment has taken the name %s meanwhile; set replace to put a newer version in its place", stored.GetName())
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

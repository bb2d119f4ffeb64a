package shell

import (
	"context"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/procfs"
)

var _ executor.LeftoverEnder = (*Executor)(nil)

// EndLeftover kills the processes that are marked as those of the attempt, which its
// watchdog may be doing, too.
func (e *Executor) EndLeftover(_ context.Context, id string) error {
	return procfs.KillMarked(id)
}

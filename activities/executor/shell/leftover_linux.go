package shell

import (
	"context"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/procfs"
)

var _ executor.LeftoverEnder = (*Executor)(nil)

// EndLeftover kills the processes marked with the attempt's id. The watchdog of the
// dead worker may be doing the same.
func (e *Executor) EndLeftover(_ context.Context, id string) error {
	return procfs.KillMarked(id)
}

package shell

import (
	"context"

	"switchyard/activities/executor/shell/procfs"
)

// endLeftover kills the processes marked with an attempt's id. The watchdog of the dead worker may be doing the same.
func endLeftover(_ context.Context, id string) error { return procfs.KillMarked(id) }

package shell

import (
	"context"
	"fmt"

	"switchyard/activities/executor"
)

var _ executor.LeftoverEnder = (*Executor)(nil)

// EndLeftover kills the processes that are marked as those of the attempt, which its
// watchdog may be doing, too.
func (e *Executor) EndLeftover(_ context.Context, id string) error {
	f := newFinder(id)
	return endAll(func() []process {
		living, _ := f.find()
		return living
	}, func(left []process) error { return fmt.Errorf("%s: processes %v survive SIGKILL", id, left) })
}

//go:build !linux

package shell

import (
	"context"

	"switchyard/activities/executor"
)

// Enter returns a Refusal on systems other than Linux.
func (e *Executor) Enter(context.Context, string) (executor.Inside, error) {
	return nil, &executor.Refusal{Text: "tasks can only be entered on Linux nodes"}
}

package run

import (
	"slices"
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/names"
)

// The loop carries out commands in the order of their arrival, and answers each with its own refusal.
func TestCommandsAreCarriedOutInOrder(t *testing.T) {
	t.Parallel()
	r := newBegunRun(t, tasks(map[string]*v1.TaskDefinition{"build": {Type: v1.TypeShell}}))
	apply(r, r.core.Start())
	for _, name := range []string{names.HoldUpdate, names.HoldUpdate, names.ReleaseUpdate} {
		i := slices.IndexFunc(command.Updates, func(u command.Update) bool { return u.Name == name })
		r.queue = append(r.queue, &request{update: command.Updates[i], command: &historyv1.TaskCommand{Task: "build"}})
	}
	first, second, third := r.queue[0], r.queue[1], r.queue[2]
	r.obey()
	if first.err != nil || second.err == nil || third.err != nil || !third.done || len(r.queue) > 0 {
		t.Errorf("the answers are %v, %v, %v", first.err, second.err, third.err)
	}
}

package run

import (
	"errors"
	"slices"
	"testing"

	"go.temporal.io/sdk/temporal"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
)

// newCommands returns the commands of a run with one task.
func newCommands(t *testing.T) *commands {
	t.Helper()
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"build": {Type: v1.TypeShell}}))
	apply(x, x.core.Start())
	return &commands{execution: x}
}

// The loop executes commands in the order of their arrival, also those that arrive meanwhile.
func TestCommandsAreExecutedInOrder(t *testing.T) {
	t.Parallel()
	cs, done := newCommands(t), []int{}
	failure := errors.New("not now")
	third := &command{do: func() error { done = append(done, 3); return nil }}
	first := &command{do: func() error { done = append(done, 1); cs.queue = append(cs.queue, third); return nil }}
	second := &command{do: func() error { done = append(done, 2); return failure }}
	cs.queue = []*command{first, second}
	cs.obey()
	if !slices.Equal(done, []int{1, 2, 3}) || cs.hasQueued() || first.err != nil || second.err != failure || !third.done {
		t.Errorf("executed %v", done)
	}
}

// A command is refused with the reason: the task does not exist, does not allow it, or its run is ending.
func TestCommandsAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	cs := newCommands(t)
	allowed := func(int) error { return nil }
	if i, err := cs.target("build", allowed); i != 0 || err != nil {
		t.Errorf("task %d, %v", i, err)
	}
	_, err := cs.target("gone", allowed)
	if got := refused(err); got != names.UnknownTaskError+`: task "gone": `+dag.ErrUnknownTask.Error() {
		t.Errorf("an unknown task: %s", got)
	}
	_, err = cs.target("build", func(int) error { return errors.New("it runs") })
	if got := refused(err); got != names.TaskStateError+": it runs" {
		t.Errorf("a task that does not allow it: %s", got)
	}
	_, err = cs.target("build", func(int) error { return refuse(names.NotAllowedError, errors.New("ann may not")) })
	if got := refused(err); got != names.NotAllowedError+": ann may not" {
		t.Errorf("a person who may not: %s", got)
	}
	cs.cancel("", "")
	_, err = cs.target("build", allowed)
	if got := refused(err); got != names.TaskStateError+": the run is being cancelled" {
		t.Errorf("a cancelled run: %s", got)
	}
	apply(cs.execution, cs.core.Apply(cs.takeEvents()...))
	_, err = cs.target("build", allowed)
	if got := refused(err); got != names.RunEndedError+": "+errJustEnded.Error() {
		t.Errorf("a run that has ended: %s", got)
	}
}

// The first cancellation counts, and the next execution knows who has sent it.
func TestFirstCancellationCounts(t *testing.T) {
	t.Parallel()
	cs := newCommands(t)
	cs.cancel("ann", "cancelled by ann: wrong branch")
	cs.cancel("bob", "cancelled by bob")
	events := cs.takeEvents()
	if len(events) != 1 || events[0] != (dag.Cancel{Error: "cancelled by ann: wrong branch"}) || cs.cancelledBy() != "ann" {
		t.Errorf("events %v, cancelled by %q", events, cs.cancelledBy())
	}
	cs.core.Apply(events...)
	var carried historyv1.RunState
	cs.save(&carried)
	next := &commands{execution: cs.execution}
	if next.restore(&carried); !next.isCancelled() || next.cancelledBy() != "ann" {
		t.Errorf("cancelled: %v by %q", next.isCancelled(), next.cancelledBy())
	}
}

// refused returns the type and the text of the refusal of a command, or "" if err is none.
func refused(err error) string {
	app, _ := errors.AsType[*temporal.ApplicationError](err)
	if app == nil {
		return ""
	}
	return app.Type() + ": " + app.Message()
}

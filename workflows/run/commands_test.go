package run

import (
	"errors"
	"slices"
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
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
	third := &queued{do: func() error { done = append(done, 3); return nil }}
	first := &queued{do: func() error { done = append(done, 1); cs.queue = append(cs.queue, third); return nil }}
	second := &queued{do: func() error { done = append(done, 2); return failure }}
	cs.queue = []*queued{first, second}
	cs.obey()
	if !slices.Equal(done, []int{1, 2, 3}) || cs.hasQueued() || first.err != nil || second.err != failure || !third.done {
		t.Errorf("executed %v", done)
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

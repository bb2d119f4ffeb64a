package run

import (
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/limits"

	"go.temporal.io/sdk/workflow"
)

// The state of an open run says what it waits for: first of all for people.
func TestOpenState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before    *v1.RunApproval
		paused    bool
		approvals int
		want      string
	}{
		"running":                         {want: v1.RunRunning},
		"before its approval":             {before: &v1.RunApproval{State: v1.ApprovalPending}, paused: true, want: v1.RunPendingApproval},
		"approved":                        {before: &v1.RunApproval{State: v1.ApprovalApproved}, want: v1.RunRunning},
		"paused":                          {paused: true, approvals: 2, want: v1.RunPaused},
		"only approvals are under way":    {approvals: 2, want: v1.RunPendingApproval},
		"another task is under way still": {approvals: 1, want: v1.RunRunning},
	} {
		x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"a": {Type: v1.TypeApproval}, "b": {Type: v1.TypeApproval}}))
		apply(x, x.core.Start())
		x.approval = test.before
		if test.paused {
			x.flight.Pause()
		}
		for i := range test.approvals {
			x.flight.Want(i)
		}
		x.flight.Admit(startTime)
		if got := x.openState(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The dead letters of partitions count like those of the run itself.
func TestDeadLettersOfPartitionsCount(t *testing.T) {
	t.Parallel()
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"a": {Type: v1.TypeShell}}))
	d := apply(x, x.core.Start())
	x.core.Apply(dag.Placed{Task: d.Place[0], Claim: x.core.Task(0).Claim, Node: "node-1"})
	x.core.Apply(dag.Ended{Task: 0, Claim: x.core.Task(0).Claim, State: v1.TaskFailed, ExitCode: 1})
	x.fanOuts.Restore(0, &historyv1.TaskState{
		Task: &v1.Task{Counts: map[string]int32{v1.TaskDeadLetter: 3}}, Partitions: []*historyv1.PartitionReport{{Over: true}},
	})
	if got, want := x.countDeadLetters(), 3+x.core.Count(v1.TaskDeadLetter); got != want {
		t.Errorf("%d dead letters, want %d", got, want)
	}
}

// A run that waits for its input shows why, and otherwise that it has not begun.
func TestStatusBeforeTheRunBegins(t *testing.T) {
	t.Parallel()
	env := newTestEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		r := newRun(ctx, &historyv1.RunInput{}, limits.Run{}.WithDefaults())
		if _, err := r.answerStatus(&historyv1.StatusRequest{}); err != errNotBegun {
			t.Errorf("the answer is %v", err)
		}
		const problem = "waits to load its input: the disk is full"
		r.calls.SetProblem(problem)
		res, err := r.answerStatus(&historyv1.StatusRequest{})
		if err != nil || res.GetRun().GetState() != v1.RunPending || res.GetRun().GetProblem() != problem {
			t.Errorf("%v, %v", res, err)
		}
		if _, err := r.answerEvents(&historyv1.EventsRequest{}); err != errNotBegun {
			t.Errorf("events: %v", err)
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

package run

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// A command that arrives at any point where a run yields on its way to the next execution gets an answer: the next execution
// has carried it out, or it is refused because the run is continuing as new.
func TestCommandsDuringContinueAsNewAreAnswered(t *testing.T) {
	t.Parallel()
	held, refused := 0, 0
	// One sweep may miss the last steps if an activity takes longer than usual, because the clock is real meanwhile.
	for sweep := 0; sweep < 100 && (held == 0 || refused == 0); sweep++ {
		for moment := 500 * time.Microsecond; ; moment += time.Millisecond {
			answer, answered, next := holdAt(t, moment)
			if !answered { // the run had continued before
				break
			}
			carried := len(next.GetState().GetHeld()) == 1
			switch app, ok := errors.AsType[*temporal.ApplicationError](answer); {
			case answer == nil && carried:
				held++
			case ok && app.Type() == names.RunContinuingError && !carried:
				refused++
			default:
				t.Errorf("after %v: the answer is %v, held is %v", moment, answer, next.GetState().GetHeld())
			}
		}
	}
	if held == 0 || refused == 0 {
		t.Errorf("%d commands carried out, %d refused; want some of both", held, refused)
	}
}

// holdAt sends an update, after a delay, to a run that continues as new. Each budget charge of the run takes a millisecond.
// holdAt returns the answer, whether one came, and the input of the next execution.
func holdAt(t *testing.T, moment time.Duration) (answer error, answered bool, next *historyv1.RunInput) {
	t.Helper()
	env := newTestEnvironment()
	env.SetCurrentHistoryLength(2)
	env.RegisterWorkflowWithOptions(Runner{Limits: limits.Run{HistoryEvents: 1, HardHistoryEvents: 1, ScheduleBytes: 1}}.Run,
		workflow.RegisterOptions{Name: names.RunWorkflow})
	env.RegisterActivityWithOptions(func(*historyv1.SaveEventsRequest) error { return nil }, activity.RegisterOptions{Name: names.SaveEventsActivity})
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(names.HoldUpdate, "hold", &testsuite.TestUpdateCallback{
			OnAccept:   func() {},
			OnReject:   func(err error) { answer, answered = err, true },
			OnComplete: func(_ any, err error) { answer, answered = err, true },
		}, &historyv1.TaskCommand{Task: "late"})
	}, moment)
	env.ExecuteWorkflow(names.RunWorkflow, &historyv1.RunInput{Definition: &v1.Definition{
		Name: "new", Tasks: map[string]*v1.TaskDefinition{"late": {Type: v1.TypeApproval}},
	}})
	end, ok := errors.AsType[*workflow.ContinueAsNewError](env.GetWorkflowError())
	if !ok {
		t.Fatalf("after %v: the run ends with %v; the answer of the update is %v", moment, env.GetWorkflowError(), answer)
	}
	next = &historyv1.RunInput{}
	if err := converter.GetDefaultDataConverter().FromPayloads(end.Input, next); err != nil {
		t.Fatal(err)
	}
	return answer, answered, next
}

// An update that an earlier execution has carried out gets the same answer again, and changes nothing; another one is refused.
func TestUpdateIsRecognizedInTheNextExecution(t *testing.T) {
	t.Parallel()
	answer, answered, next := holdAt(t, time.Millisecond)
	for moment := 2 * time.Millisecond; !answered || answer != nil; moment += time.Millisecond {
		if moment > 100*time.Millisecond {
			t.Fatalf("the run carries out no update before it continues as new: %v", answer)
		}
		answer, answered, next = holdAt(t, moment)
	}
	if got := next.GetState().GetCarriedOut(); !slices.Equal(got, []string{"hold"}) {
		t.Fatalf("the next execution knows the updates %q", got)
	}
	env := newTestEnvironment()
	env.RegisterWorkflowWithOptions(Runner{}.Run, workflow.RegisterOptions{Name: names.RunWorkflow})
	answers := map[string]error{}
	for id, after := range map[string]time.Duration{"hold": 0, "another": time.Second} { // the first arrives before the run has begun
		env.RegisterDelayedCallback(func() {
			env.UpdateWorkflow(names.HoldUpdate, id, &testsuite.TestUpdateCallback{
				OnAccept:   func() {},
				OnReject:   func(err error) { answers[id] = err },
				OnComplete: func(_ any, err error) { answers[id] = err },
			}, &historyv1.TaskCommand{Task: "late"})
		}, after)
	}
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.ExecuteWorkflow(names.RunWorkflow, next)
	if err, ok := answers["hold"]; !ok || err != nil {
		t.Errorf("the update is repeated: answered %v, with %v", ok, err)
	}
	if err := answers["another"]; err == nil || !strings.Contains(err.Error(), "already held") {
		t.Errorf("another update is answered with %v", err)
	}
}

package run

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// A generation that follows one closed from outside starts nothing until the attempts in flight at that time have ended on
// their nodes, or their leases have expired. Results that such attempts still produce answer the next attempts.

// abandoned owns the attempts of the previous generation that may still run.
type abandoned struct {
	*execution

	requests []*historyv1.AwaitAnswerRequest
}

// awaitAll waits for the attempts that the previous generation left behind to end.
func (ab *abandoned) awaitAll() {
	for _, a := range slices.Clone(ab.requests) {
		ab.await(a)
	}
}

// awaitEnd blocks until no attempt of the previous generation runs. The next generation has no record of those attempts.
func (ab *abandoned) awaitEnd() {
	for len(ab.requests) > 0 {
		_ = workflow.Await(ab.ctx, ab.calls.HasReady) // ctx is never cancelled
		ab.calls.Settle()
	}
}

func (ab *abandoned) await(a *historyv1.AwaitAnswerRequest) {
	future := ab.calls.Activity(options.AwaitAnswer(unitName(a.GetAttempt()), a.GetAttempt()), names.AwaitAnswerActivity, a, calls.MemberCharge)
	ab.calls.Watch(future, func(f workflow.Future) {
		err := f.Get(ab.ctx, nil)
		if _, away := errors.AsType[*temporal.ApplicationError](err); away {
			ab.calls.Watch(ab.calls.AwaitStore("look for the result of "+unitName(a.GetAttempt()), err), func(workflow.Future) {
				ab.calls.Succeeded()
				ab.await(a)
			})
			return
		}
		ab.requests = slices.DeleteFunc(ab.requests, func(other *historyv1.AwaitAnswerRequest) bool { return other == a })
		ab.wake()
	})
}

// isPending reports whether any attempt of the previous generation may still run.
func (ab *abandoned) isPending() bool { return len(ab.requests) > 0 }

// text returns what nothing may start before, or "" if no attempt of the previous generation runs.
func (ab *abandoned) text() string {
	if len(ab.requests) == 0 {
		return ""
	}
	oldest := ab.requests[0].GetAttempt()
	text := fmt.Sprintf("waits for the old attempt of %s on %s to end", unitName(oldest), oldest.GetNode())
	if more := len(ab.requests) - 1; more > 0 {
		text += fmt.Sprintf(", and for %d more", more)
	}
	return text
}

// save hands the attempts over to the next execution.
func (ab *abandoned) save(c *historyv1.RunState) { c.Abandoned = ab.requests }

// restore continues with the attempts that the previous execution waited for.
func (ab *abandoned) restore(c *historyv1.RunState) { ab.requests = slices.Clone(c.GetAbandoned()) }

// unitName returns the name of an attempt's task or instance, or of the first instance of its batch.
func unitName(req *historyv1.ExecuteRequest) string {
	if req.Index == nil {
		return req.GetTask()
	}
	return names.InstanceName(req.GetTask(), int(req.GetIndex()))
}

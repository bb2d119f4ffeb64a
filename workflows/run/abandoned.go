package run

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// A generation that follows one closed from outside starts nothing until the attempts in flight at that time have ended on
// their nodes, or their leases have expired. Results that such attempts still produce answer the next attempts.

// awaitAbandoned waits for the attempts that the previous generation left behind to end.
func (r *run) awaitAbandoned() {
	for _, a := range slices.Clone(r.abandoned) {
		r.awaitOneAbandoned(a)
	}
}

// endAbandoned blocks until no attempt of the previous generation runs. The next generation has no record of those attempts.
func (r *run) endAbandoned() {
	for len(r.abandoned) > 0 {
		_ = workflow.Await(r.ctx, r.pending.HasReady) // ctx is never cancelled
		r.pending.Settle()
	}
}

func (r *run) awaitOneAbandoned(a *v1.AwaitAnswerRequest) {
	future := r.startActivity(options.AwaitAnswer(unitName(a.GetAttempt()), a.GetAttempt()), names.AwaitAnswerActivity, a, memberCharge)
	r.pending.Watch(future, func(f workflow.Future) {
		err := f.Get(r.ctx, nil)
		if _, away := errors.AsType[*temporal.ApplicationError](err); away {
			r.pending.Watch(r.awaitStore("look for the result of "+unitName(a.GetAttempt()), err), func(workflow.Future) {
				r.succeeded()
				r.awaitOneAbandoned(a)
			})
			return
		}
		r.abandoned = slices.DeleteFunc(r.abandoned, func(other *v1.AwaitAnswerRequest) bool { return other == a })
		r.wake()
	})
}

// waitReason returns why a task that has not requested a node is waiting.
func (r *run) waitReason(i int) string {
	why := r.admission.Why(i)
	if why == "" || len(r.abandoned) == 0 {
		return why
	}
	oldest := r.abandoned[0].GetAttempt()
	text := fmt.Sprintf("waits for the old attempt of %s on %s to end", unitName(oldest), oldest.GetNode())
	if more := len(r.abandoned) - 1; more > 0 {
		text += fmt.Sprintf(", and for %d more", more)
	}
	return text
}

// unitName returns the name of an attempt's task or instance, or of the first instance of its batch.
func unitName(req *v1.ExecuteRequest) string {
	if req.Index == nil {
		return req.GetTask()
	}
	return names.InstanceName(req.GetTask(), int(req.GetIndex()))
}

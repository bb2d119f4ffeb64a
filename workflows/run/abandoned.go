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

// A generation that follows one that was closed from outside starts nothing until the attempts that were under way then
// have ended on their nodes, or their leases are over. What completes of them regardless answers the next attempts.

// awaitAbandoned waits for the end of attempts of the generation before.
func (r *run) awaitAbandoned() {
	for _, a := range slices.Clone(r.abandoned) {
		r.awaitOneAbandoned(a)
	}
}

// endAbandoned returns when no attempt of the generation before runs: the next generation knows nothing of those.
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

// waitReason returns why a task waits that has not asked for a node.
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

// unitName returns the task or instance that an attempt is of, or the first one of its batch.
func unitName(req *v1.ExecuteRequest) string {
	if req.Index == nil {
		return req.GetTask()
	}
	return names.InstanceName(req.GetTask(), int(req.GetIndex()))
}

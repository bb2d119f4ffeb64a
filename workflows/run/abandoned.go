package run

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// awaitAbandoned waits for an attempt that the previous generation left behind to end.
func (r *run) awaitAbandoned(a *historyv1.AwaitAnswerRequest) {
	name := flight.UnitName(a.GetAttempt())
	future := r.calls.Activity(options.AwaitAnswer(name, a.GetAttempt()), names.AwaitAnswerActivity, a, dataflow.MemberCharge)
	r.calls.Watch(future, func(f workflow.Future) {
		err := f.Get(r.ctx, nil)
		if _, away := errors.AsType[*temporal.ApplicationError](err); away {
			r.calls.Watch(r.calls.AwaitStore("look for the result of "+name, err), func(workflow.Future) {
				r.calls.Succeeded()
				r.awaitAbandoned(a)
			})
			return
		}
		r.fly(r.flight.AbandonedEnded(a))
	})
}

// awaitAbandonedEnd blocks until no attempt of the previous generation runs. The next generation has no record of those
// attempts.
func (r *run) awaitAbandonedEnd() {
	for r.flight.HasAbandoned() {
		_ = workflow.Await(r.ctx, r.calls.HasReady) // ctx is never cancelled
		r.calls.Settle()
	}
}

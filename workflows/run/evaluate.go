package run

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/names"
)

// evaluate sends all queued questions in one call. Questions that the time budget of the call did not reach are asked again in
// a later round, so that events and cancellation are handled in between. Questions that failed because the store is unavailable
// are asked again when the store is back.
func (r *run) evaluate() {
	if !r.data.HasQuestions() {
		return
	}
	req, err := build(r, (*dataflow.Draft).EvaluateRequest)
	if err != nil {
		return
	}
	asked := r.data.TakeQuestions()
	var res historyv1.EvaluateResponse
	err = r.calls.Call("evaluate conditions", names.EvaluateActivity, []any{req}).Get(r.ctx, &res)
	var away error
	switch {
	case err != nil && calls.IsRepeatable(err):
		away, err = err, nil
	case res.GetAway() != "":
		away = errors.New(res.GetAway())
	default:
		r.calls.Succeeded()
	}
	answers, rest := r.data.Evaluated(asked, &res, err)
	for _, a := range answers {
		r.useAnswer(a.Question, a.Answer)
	}
	switch {
	case len(rest) == 0:
	case away != nil:
		r.calls.Watch(r.calls.AwaitStore("evaluate conditions", away), func(workflow.Future) { r.data.AskAgain(rest) })
	default:
		r.calls.After(time.Millisecond, "more conditions", func() { r.data.AskAgain(rest) })
	}
}

// useAnswer passes the answer to a question on to what has asked it.
func (r *run) useAnswer(q dataflow.Question, a *historyv1.ConditionAnswer) {
	switch q.Kind {
	case dataflow.Condition:
		r.raise(dag.Evaluated{Task: q.Task, Value: a.GetValue(), Because: a.GetBecause(), Err: a.GetError(), Broken: a.GetBroken()})
	case dataflow.Count, dataflow.Items:
		r.spread(r.fanOuts.Counted(q.Task, a))
	case dataflow.Cache:
		r.fly(r.flight.LookedUp(q.Task, a))
	case dataflow.Lock:
		r.fly(r.flight.LockNamed(q.Task, a))
	case dataflow.Template:
		r.fly(r.flight.Rendered(q.Task, a, r.now()))
	case dataflow.Retry:
		r.fly(r.flight.RetryAnswered(q.End, a))
	}
}

package run

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/calls"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/names"
)

// build returns a message, after the calls of the store that it needs. A message does without what could not be stored or
// collected. The only error is calls.ErrInterrupted.
func build[M any](r *run, message func(*dataflow.Draft) (M, *dataflow.Call)) (M, error) {
	for draft := r.data.Draft(); ; {
		m, c := message(draft)
		if c == nil {
			return m, nil
		}
		err := r.calls.MustNow(c.Summary, c.Activity, c.Answer, c.Args...)
		switch {
		case errors.Is(err, calls.ErrInterrupted):
			return m, err
		case err != nil:
			workflow.GetLogger(r.ctx).Warn("failed to "+c.Summary+"; the run continues without it", "error", err)
		case c.Activity == names.SaveAncestorsActivity:
			r.calls.Charge(calls.CommandCharge)
		}
		draft.Answered(c, err)
	}
}

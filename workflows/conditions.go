package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

// evaluate has the conditions that are due answered, in one call. Those that the
// call's time budget did not reach are asked again in a later round, so that
// news and cancellation come between.
func (r *run) evaluate() {
	if len(r.conditions) == 0 {
		return
	}
	asked := r.conditions
	r.conditions = nil
	ctx := workflow.WithLocalActivityOptions(r.ctx, localOptions("evaluate conditions"))
	var res v1.EvaluateResponse
	if err := workflow.ExecuteLocalActivity(ctx, names.EvaluateActivity, r.evaluateRequest(asked)).Get(ctx, &res); err != nil {
		for _, i := range asked {
			r.events = append(r.events, dag.Evaluated{Task: i, Err: "the condition could not be evaluated: " + err.Error(), Broken: true})
		}
		return
	}
	answered := make(map[string]bool, len(res.GetAnswers()))
	for _, a := range res.GetAnswers() {
		if i, ok := r.graph.Index(a.GetTask()); ok {
			answered[a.GetTask()] = true
			r.events = append(r.events, dag.Evaluated{Task: i, Value: a.GetValue(), Err: a.GetError(), Broken: a.GetBroken()})
		}
	}
	var rest []int
	for _, i := range asked {
		if !answered[r.graph.Name(i)] {
			rest = append(rest, i)
		}
	}
	if len(rest) > 0 {
		r.after(time.Millisecond, "more conditions", func() {
			for _, i := range rest {
				// A task that was cancelled in between has ended.
				if r.core.Task(i).State == dag.StatePending {
					r.conditions = append(r.conditions, i)
				}
			}
		})
	}
}

func (r *run) evaluateRequest(tasks []int) *v1.EvaluateRequest {
	req := &v1.EvaluateRequest{
		Parents: map[string]*v1.ParentView{},
		Workflow: &v1.WorkflowView{
			Name:    r.in.GetDefinition().GetName(),
			RunId:   r.id,
			Context: r.context,
			Input:   r.wholeInput(),
		},
	}
	for _, i := range tasks {
		name := r.graph.Name(i)
		refs := r.in.GetReferences()[name].GetTasks()
		req.Conditions = append(req.Conditions, &v1.Condition{
			Task:       name,
			Expression: r.graph.Definition(i).GetCondition(),
			References: refs,
		})
		for _, ref := range refs {
			if j, ok := r.graph.Index(ref); ok && req.Parents[ref] == nil {
				result, record := r.board.result(j)
				req.Parents[ref] = &v1.ParentView{State: r.core.Task(j).State, Result: result, Record: record}
			}
		}
	}
	return req
}

package run

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/structs"
)

// Kinds of questions: Condition.kind.
const (
	asksCondition = ""
	asksCount     = "count"
	asksItems     = "items"
	asksCache     = "cache"
	asksRetry     = "retry"
	asksLock      = "lock"
	asksTemplate  = "template"
)

// question is an expression of a task that is waiting to be evaluated. A task has at most one at a time.
type question struct {
	task  int
	kind  string
	claim int32       // claim of the waiting task; for "cache", "lock" and "template"
	end   *flight.End // the failed attempt; for "retry"
	// answered receives the answer, unless the task no longer needs it.
	answered func(*historyv1.ConditionAnswer)
}

// ask queues an expression for evaluation in this round.
func (r *run) ask(q question) {
	if q.kind == asksRetry {
		r.openRetries++
	}
	r.questions = append(r.questions, q)
}

// hasQuestions reports whether any expression is queued.
func (r *run) hasQuestions() bool { return len(r.questions) > 0 }

// hasOpenRetries reports whether it is still unknown whether a failed attempt may be retried.
func (r *run) hasOpenRetries() bool { return r.openRetries > 0 }

// evaluate sends all queued questions in one call. Questions that the time budget of the call did not reach are asked again in
// a later round, so that events and cancellation are handled in between. Questions that failed because the store is unavailable
// are asked again when the store is back.
func (r *run) evaluate() {
	if len(r.questions) == 0 {
		return
	}
	asked := r.questions
	r.questions = nil
	req, err := r.evaluateRequest(asked)
	if err != nil {
		r.questions = asked
		r.wake()
		return
	}
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
	answers := make(map[string]*historyv1.ConditionAnswer, len(res.GetAnswers()))
	for _, a := range res.GetAnswers() {
		answers[a.GetTask()] = a
	}
	var rest []question
	for _, q := range asked {
		switch a := answers[r.core.Name(q.task)]; {
		case err != nil:
			r.answered(q, &historyv1.ConditionAnswer{Error: "the condition could not be evaluated: " + err.Error(), Broken: true})
		case a != nil:
			r.answered(q, a)
		default:
			rest = append(rest, q)
		}
	}
	again := func() {
		for _, q := range rest {
			if r.isWanted(q) {
				r.questions = append(r.questions, q)
			}
		}
	}
	switch {
	case len(rest) == 0:
	case away != nil:
		r.calls.Watch(r.calls.AwaitStore("evaluate conditions", away), func(workflow.Future) { again() })
	default:
		r.calls.After(time.Millisecond, "more conditions", again)
	}
}

// isWanted reports whether the answer to a question is still needed. A task that was cancelled meanwhile has ended.
func (r *run) isWanted(q question) bool {
	switch q.kind {
	case asksRetry:
		return true
	case asksCache, asksLock, asksTemplate:
		return r.isQueued(q.task, q.claim)
	}
	return r.core.Task(q.task).State == v1.TaskPending
}

// answered applies the answer to a question.
func (r *run) answered(q question, a *historyv1.ConditionAnswer) {
	if q.kind == asksRetry {
		r.openRetries--
	}
	if q.kind == asksCondition || r.isWanted(q) {
		q.answered(a)
	}
}

// askCondition queues the condition of a task for evaluation.
func (r *run) askCondition(i int) {
	r.ask(question{task: i, kind: asksCondition, answered: func(a *historyv1.ConditionAnswer) {
		r.raise(dag.Evaluated{Task: i, Value: a.GetValue(), Because: a.GetBecause(), Err: a.GetError(), Broken: a.GetBroken()})
	}})
}

// evaluateRequest returns the request that evaluates some questions. The only error is calls.ErrInterrupted.
func (r *run) evaluateRequest(asked []question) (*historyv1.EvaluateRequest, error) {
	req := &historyv1.EvaluateRequest{
		Chain: r.chain, CacheScope: r.cacheScope(),
		Parents: map[string]*historyv1.ParentView{},
		Workflow: &historyv1.WorkflowView{
			Name:    r.in.GetDefinition().GetName(),
			RunId:   r.id,
			Context: r.fanOuts.Context(),
			Input:   r.wholeInput(),
		},
	}
	for _, q := range asked {
		c := r.condition(q)
		req.Conditions = append(req.Conditions, c)
		if err := r.addViews(req.Parents, c.References); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// condition returns the request for one question.
func (r *run) condition(q question) *historyv1.Condition {
	def, refs := r.core.Definition(q.task), r.in.GetReferences()[r.graph.Name(r.core.TaskOf(q.task))]
	c := &historyv1.Condition{Task: r.core.Name(q.task), Kind: q.kind}
	switch q.kind {
	case asksCondition:
		c.Expression, c.References = def.GetCondition(), refs.GetTasks()
	case asksCount:
		c.Expression, c.References = def.GetParallel().GetStringValue(), refs.GetFanOut()
	case asksItems:
		c.Expression, c.References = def.GetForeach().GetStringValue(), refs.GetFanOut()
	case asksCache:
		c.Expression, c.References = def.GetCache().GetKey(), refs.GetCache()
		c.Input = r.taskInput(q.task)
		r.addItem(c, q.task)
		if ttl := definition.CacheTTL(def); ttl > 0 {
			c.Ttl = durationpb.New(ttl)
		}
	case asksRetry:
		c.Expression = def.GetRetry().GetWhen()
		end := q.end
		c.Attempt = &historyv1.AttemptView{
			Number: end.Attempt, State: end.Ended.State, Reason: end.Ended.Reason,
			Result: flight.ResultOf(end.Response), Record: end.Response.GetRecord(),
		}
	case asksLock:
		c.Expression, c.References = definition.LockName(def), refs.GetTemplates()
		c.Input = r.taskInput(q.task)
		r.addItem(c, q.task)
	case asksTemplate:
		c.Template, c.References = definition.TemplateSpec(def), refs.GetTemplates()
		c.Input = r.taskInput(q.task)
		r.addItem(c, q.task)
	}
	return c
}

// addItem adds the foreach item of an instance, or the key of the stored list that holds the item.
func (r *run) addItem(c *historyv1.Condition, i int) {
	if r.core.Group(i) >= 0 {
		c.Item, c.Items = r.item(i)
	}
}

// taskInput returns what expressions of task i see as `input`: the task's own input and, for an instance, its index and the
// number of instances.
func (r *run) taskInput(i int) *structpb.Struct {
	input := structs.Clone(r.core.Definition(i).GetInput())
	number := r.core.Number(i)
	if number < 0 {
		return input
	}
	set := func(word string, v *structpb.Value) {
		if _, taken := input.Fields[word]; !taken && v != nil {
			input.Fields[word] = v
		}
	}
	count, _ := r.instanceCount(r.core.Group(i))
	set("index", structpb.NewNumberValue(float64(number)))
	set("count", structpb.NewNumberValue(float64(count)))
	return input
}

// wholeInput returns the input of the run, never nil.
func (r *run) wholeInput() *structpb.Struct { return structs.Clone(r.in.GetInput()) }

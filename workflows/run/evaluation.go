package run

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
	"switchyard/workflows/status"
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
	claim int32        // claim of the waiting task; for "cache", "lock" and "template"
	end   *dispatchEnd // the failed attempt; for "retry"
}

// ask queues an expression for evaluation in this round.
func (r *run) ask(q question) {
	if q.kind == asksRetry {
		r.openEnds++
	}
	r.questions = append(r.questions, q)
}

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
	var res v1.EvaluateResponse
	err = r.call("evaluate conditions", names.EvaluateActivity, []any{req}).Get(r.ctx, &res)
	var away error
	switch {
	case err != nil && repeatable(err):
		away, err = err, nil
	case res.GetAway() != "":
		away = errors.New(res.GetAway())
	default:
		r.succeeded()
	}
	answers := make(map[string]*v1.ConditionAnswer, len(res.GetAnswers()))
	for _, a := range res.GetAnswers() {
		answers[a.GetTask()] = a
	}
	var rest []question
	for _, q := range asked {
		switch a := answers[r.core.Name(q.task)]; {
		case err != nil:
			r.answered(q, &v1.ConditionAnswer{Error: "the condition could not be evaluated: " + err.Error(), Broken: true})
		case a != nil:
			r.answered(q, a)
		default:
			rest = append(rest, q)
		}
	}
	again := func() {
		for _, q := range rest {
			if r.wanted(q) {
				r.questions = append(r.questions, q)
			}
		}
	}
	switch {
	case len(rest) == 0:
	case away != nil:
		r.pending.Watch(r.awaitStore("evaluate conditions", away), func(workflow.Future) { again() })
	default:
		r.after(time.Millisecond, "more conditions", again)
	}
}

// wanted reports whether the answer to a question is still needed. A task that was cancelled meanwhile has ended.
func (r *run) wanted(q question) bool {
	rec := r.core.Task(q.task)
	switch q.kind {
	case asksRetry:
		return true
	case asksCache, asksLock, asksTemplate:
		return rec.State == v1.TaskQueued && rec.Claim == q.claim
	}
	return rec.State == v1.TaskPending
}

// answered applies the answer to a question.
func (r *run) answered(q question, a *v1.ConditionAnswer) {
	switch q.kind {
	case asksCondition:
		r.events = append(r.events, dag.Evaluated{Task: q.task, Value: a.GetValue(), Because: a.GetBecause(), Err: a.GetError(), Broken: a.GetBroken()})
	case asksCount, asksItems:
		if !r.wanted(q) {
			return
		}
		r.status.SetItems(q.task, a.GetItems())
		r.expanded(q.task, int(a.GetCount()), a.GetError(), a.GetBroken())
	case asksRetry:
		r.openEnds--
		r.mayRepeat(q.end, a)
	case asksCache:
		if r.wanted(q) {
			r.cacheAnswered(q.task, a)
		}
	case asksLock:
		if r.wanted(q) {
			r.lockNamed(q.task, a)
		}
	case asksTemplate:
		if r.wanted(q) {
			r.rendered(q.task, a)
		}
	}
}

// mayRepeat reports a failed attempt to the core once retry.when has been evaluated.
func (r *run) mayRepeat(end *dispatchEnd, a *v1.ConditionAnswer) {
	ended := end.ended
	ended.NoRetry = !a.GetValue()
	if a.GetError() != "" {
		ended.Error = phrase.Because(ended.Error, "retry.when: "+a.GetError())
	}
	if ended.NoRetry {
		addUnknownOutcome(&ended)
	}
	r.events = append(r.events, ended)
}

// evaluateRequest returns the request that evaluates some questions. The only error is errInterrupted.
func (r *run) evaluateRequest(asked []question) (*v1.EvaluateRequest, error) {
	req := &v1.EvaluateRequest{
		Chain: r.chain, CacheScope: r.cacheScope(),
		Parents: map[string]*v1.ParentView{},
		Workflow: &v1.WorkflowView{
			Name:    r.in.GetDefinition().GetName(),
			RunId:   r.id,
			Context: r.context,
			Input:   r.wholeInput(),
		},
	}
	for _, q := range asked {
		c := r.condition(q)
		req.Conditions = append(req.Conditions, c)
		if err := r.view(req.Parents, c.References); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// condition returns the request for one question.
func (r *run) condition(q question) *v1.Condition {
	def, refs := r.core.Definition(q.task), r.in.GetReferences()[r.graph.Name(r.status.TaskOf(q.task))]
	c := &v1.Condition{Task: r.core.Name(q.task), Kind: q.kind}
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
		c.Attempt = &v1.AttemptView{
			Number: end.number, State: end.ended.State, Reason: end.ended.Reason,
			Result: status.ResultOf(end.res), Record: end.res.GetRecord(),
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
func (r *run) addItem(c *v1.Condition, i int) {
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
	set("index", structpb.NewNumberValue(float64(number)))
	set("count", structpb.NewNumberValue(float64(r.status.FanOut(r.core.Group(i)).Total)))
	return input
}

// view adds the views of ancestors that expressions see. The only error is errInterrupted.
func (r *run) view(views map[string]*v1.ParentView, ancestors []string) error {
	for _, name := range ancestors {
		if part := r.in.GetPartition(); part != nil {
			views[name] = part.GetViews()[name]
			continue
		}
		i, ok := r.graph.Index(name)
		if !ok || views[name] != nil {
			continue
		}
		fanOut, err := r.fanOutView(i)
		if err != nil {
			return err
		}
		result, record := r.status.Result(i)
		views[name] = &v1.ParentView{State: r.core.Task(i).State, Result: result, Record: record, FanOut: fanOut}
	}
	return nil
}

// wholeInput returns the input of the run, never nil.
func (r *run) wholeInput() *structpb.Struct { return structs.Clone(r.in.GetInput()) }

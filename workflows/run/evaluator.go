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

// evaluator owns the expressions that are to be evaluated in this round.
type evaluator struct {
	*execution
	ancestry evaluatorAncestry

	questions   []question
	openRetries int // failed attempts whose retry.when is not evaluated yet
}

// The evaluator uses these parts of other components.
type (
	evaluatorAncestry interface {
		addViews(views map[string]*historyv1.ParentView, ancestors []string) error
	}
)

// An asker queues an expression for evaluation.
type asker interface{ ask(q question) }

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
func (e *evaluator) ask(q question) {
	if q.kind == asksRetry {
		e.openRetries++
	}
	e.questions = append(e.questions, q)
}

// hasQuestions reports whether any expression is queued.
func (e *evaluator) hasQuestions() bool { return len(e.questions) > 0 }

// hasOpenRetries reports whether it is still unknown whether a failed attempt may be retried.
func (e *evaluator) hasOpenRetries() bool { return e.openRetries > 0 }

// evaluate sends all queued questions in one call. Questions that the time budget of the call did not reach are asked again in
// a later round, so that events and cancellation are handled in between. Questions that failed because the store is unavailable
// are asked again when the store is back.
func (e *evaluator) evaluate() {
	if len(e.questions) == 0 {
		return
	}
	asked := e.questions
	e.questions = nil
	req, err := e.evaluateRequest(asked)
	if err != nil {
		e.questions = asked
		e.wake()
		return
	}
	var res historyv1.EvaluateResponse
	err = e.calls.Call("evaluate conditions", names.EvaluateActivity, []any{req}).Get(e.ctx, &res)
	var away error
	switch {
	case err != nil && calls.IsRepeatable(err):
		away, err = err, nil
	case res.GetAway() != "":
		away = errors.New(res.GetAway())
	default:
		e.calls.Succeeded()
	}
	answers := make(map[string]*historyv1.ConditionAnswer, len(res.GetAnswers()))
	for _, a := range res.GetAnswers() {
		answers[a.GetTask()] = a
	}
	var rest []question
	for _, q := range asked {
		switch a := answers[e.core.Name(q.task)]; {
		case err != nil:
			e.answered(q, &historyv1.ConditionAnswer{Error: "the condition could not be evaluated: " + err.Error(), Broken: true})
		case a != nil:
			e.answered(q, a)
		default:
			rest = append(rest, q)
		}
	}
	again := func() {
		for _, q := range rest {
			if e.isWanted(q) {
				e.questions = append(e.questions, q)
			}
		}
	}
	switch {
	case len(rest) == 0:
	case away != nil:
		e.calls.Watch(e.calls.AwaitStore("evaluate conditions", away), func(workflow.Future) { again() })
	default:
		e.calls.After(time.Millisecond, "more conditions", again)
	}
}

// isWanted reports whether the answer to a question is still needed. A task that was cancelled meanwhile has ended.
func (e *evaluator) isWanted(q question) bool {
	switch q.kind {
	case asksRetry:
		return true
	case asksCache, asksLock, asksTemplate:
		return e.isQueued(q.task, q.claim)
	}
	return e.core.Task(q.task).State == v1.TaskPending
}

// answered applies the answer to a question.
func (e *evaluator) answered(q question, a *historyv1.ConditionAnswer) {
	if q.kind == asksRetry {
		e.openRetries--
	}
	if q.kind == asksCondition || e.isWanted(q) {
		q.answered(a)
	}
}

// askCondition queues the condition of a task for evaluation.
func (e *evaluator) askCondition(i int) {
	e.ask(question{task: i, kind: asksCondition, answered: func(a *historyv1.ConditionAnswer) {
		e.raise(dag.Evaluated{Task: i, Value: a.GetValue(), Because: a.GetBecause(), Err: a.GetError(), Broken: a.GetBroken()})
	}})
}

// evaluateRequest returns the request that evaluates some questions. The only error is calls.ErrInterrupted.
func (e *evaluator) evaluateRequest(asked []question) (*historyv1.EvaluateRequest, error) {
	req := &historyv1.EvaluateRequest{
		Chain: e.chain, CacheScope: e.cacheScope(),
		Parents: map[string]*historyv1.ParentView{},
		Workflow: &historyv1.WorkflowView{
			Name:    e.in.GetDefinition().GetName(),
			RunId:   e.id,
			Context: e.fanOuts.Context(),
			Input:   e.wholeInput(),
		},
	}
	for _, q := range asked {
		c := e.condition(q)
		req.Conditions = append(req.Conditions, c)
		if err := e.ancestry.addViews(req.Parents, c.References); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// condition returns the request for one question.
func (e *evaluator) condition(q question) *historyv1.Condition {
	def, refs := e.core.Definition(q.task), e.in.GetReferences()[e.graph.Name(e.core.TaskOf(q.task))]
	c := &historyv1.Condition{Task: e.core.Name(q.task), Kind: q.kind}
	switch q.kind {
	case asksCondition:
		c.Expression, c.References = def.GetCondition(), refs.GetTasks()
	case asksCount:
		c.Expression, c.References = def.GetParallel().GetStringValue(), refs.GetFanOut()
	case asksItems:
		c.Expression, c.References = def.GetForeach().GetStringValue(), refs.GetFanOut()
	case asksCache:
		c.Expression, c.References = def.GetCache().GetKey(), refs.GetCache()
		c.Input = e.taskInput(q.task)
		e.addItem(c, q.task)
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
		c.Input = e.taskInput(q.task)
		e.addItem(c, q.task)
	case asksTemplate:
		c.Template, c.References = definition.TemplateSpec(def), refs.GetTemplates()
		c.Input = e.taskInput(q.task)
		e.addItem(c, q.task)
	}
	return c
}

// addItem adds the foreach item of an instance, or the key of the stored list that holds the item.
func (e *evaluator) addItem(c *historyv1.Condition, i int) {
	if e.core.Group(i) >= 0 {
		c.Item, c.Items = e.item(i)
	}
}

// taskInput returns what expressions of task i see as `input`: the task's own input and, for an instance, its index and the
// number of instances.
func (e *evaluator) taskInput(i int) *structpb.Struct {
	input := structs.Clone(e.core.Definition(i).GetInput())
	number := e.core.Number(i)
	if number < 0 {
		return input
	}
	set := func(word string, v *structpb.Value) {
		if _, taken := input.Fields[word]; !taken && v != nil {
			input.Fields[word] = v
		}
	}
	count, _ := e.instanceCount(e.core.Group(i))
	set("index", structpb.NewNumberValue(float64(number)))
	set("count", structpb.NewNumberValue(float64(count)))
	return input
}

// wholeInput returns the input of the run, never nil.
func (e *evaluator) wholeInput() *structpb.Struct { return structs.Clone(e.in.GetInput()) }

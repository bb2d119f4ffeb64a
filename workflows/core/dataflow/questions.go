package dataflow

import (
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
	"switchyard/workflows/structs"
)

// Kind is what the answer to a question is for: Condition.kind.
type Kind string

// These are the kinds of questions.
const (
	Condition Kind = ""         // whether a task starts
	Count     Kind = "count"    // how many instances a task has
	Items     Kind = "items"    // the list of a foreach
	Cache     Kind = "cache"    // the key of a cached result, and that result
	Retry     Kind = "retry"    // whether a failed attempt may be retried
	Lock      Kind = "lock"     // the name of a lock
	Template  Kind = "template" // the spec of a task that needs no node
)

// Question is an expression of a task that is waiting to be evaluated. A task has at most one at a time.
type Question struct {
	Task  int
	Kind  Kind
	Claim int32      // claim of the waiting task, for Cache, Lock and Template
	End   flight.End // of the failed attempt, for Retry
}

// Answer is the answer to a question.
type Answer struct {
	Question Question
	Answer   *historyv1.ConditionAnswer
}

// Ask queues an expression for evaluation.
func (s *State) Ask(q Question) {
	if q.Kind == Retry {
		s.openRetries++
	}
	s.questions = append(s.questions, q)
}

// HasQuestions reports whether any expression is queued.
func (s *State) HasQuestions() bool { return len(s.questions) > 0 }

// HasOpenRetries reports whether it is still unknown whether a failed attempt may be retried.
func (s *State) HasOpenRetries() bool { return s.openRetries > 0 }

// TakeQuestions removes the queued questions and returns them. The caller reports what the evaluation came to by Evaluated.
func (s *State) TakeQuestions() []Question {
	asked := s.questions
	s.questions = nil
	return asked
}

// Evaluated returns the answers to the questions asked that their tasks still need, in order, and the questions without an answer,
// which AskAgain repeats. If the evaluation has failed for good, err answers them all.
func (s *State) Evaluated(asked []Question, res *historyv1.EvaluateResponse, err error) (answers []Answer, rest []Question) {
	given := make(map[string]*historyv1.ConditionAnswer, len(res.GetAnswers()))
	for _, a := range res.GetAnswers() {
		given[a.GetTask()] = a
	}
	for _, q := range asked {
		a := given[s.core.Name(q.Task)]
		if err != nil {
			a = &historyv1.ConditionAnswer{Error: "the condition could not be evaluated: " + err.Error(), Broken: true}
		}
		if a == nil {
			rest = append(rest, q)
			continue
		}
		if q.Kind == Retry {
			s.openRetries--
		}
		if q.Kind == Condition || s.isWanted(q) {
			answers = append(answers, Answer{q, a})
		}
	}
	return answers, rest
}

// AskAgain queues questions again, except those that their tasks no longer need.
func (s *State) AskAgain(rest []Question) {
	s.questions = append(s.questions, slices.DeleteFunc(rest, func(q Question) bool { return !s.isWanted(q) })...)
}

// isWanted reports whether the answer to a question is still needed. A task that was cancelled meanwhile has ended.
func (s *State) isWanted(q Question) bool {
	rec := s.core.Task(q.Task)
	switch q.Kind {
	case Retry:
		return true
	case Cache, Lock, Template:
		return rec.State == v1.TaskQueued && rec.Claim == q.Claim
	}
	return rec.State == v1.TaskPending
}

// EvaluateRequest returns the request that evaluates the queued questions.
func (d *Draft) EvaluateRequest() (*historyv1.EvaluateRequest, *Call) {
	req := &historyv1.EvaluateRequest{
		Chain: d.Chain, CacheScope: d.cacheScope(), Parents: d.views, Run: d.runView(),
		Workflow: &historyv1.WorkflowView{
			Name:    d.Input.GetDefinition().GetName(),
			RunId:   d.RunID,
			Context: d.fanOuts.Context(),
			Input:   structs.Clone(d.Input.GetInput()), // never nil
		},
	}
	for _, q := range d.questions {
		c := d.condition(q)
		req.Conditions = append(req.Conditions, c)
		if call := d.addViews(c.References); call != nil {
			return nil, call
		}
	}
	return req, nil
}

// condition returns the request for one question.
func (s *State) condition(q Question) *historyv1.Condition {
	def, refs := s.core.Definition(q.Task), s.Input.GetReferences()[s.graph.Name(s.core.TaskOf(q.Task))]
	c := &historyv1.Condition{Task: s.core.Name(q.Task), Kind: string(q.Kind)}
	switch q.Kind {
	case Condition:
		c.Expression, c.References = def.GetCondition(), refs.GetTasks()
	case Count:
		c.Expression, c.References = def.GetParallel().GetStringValue(), refs.GetFanOut()
	case Items:
		c.Expression, c.References = def.GetForeach().GetStringValue(), refs.GetFanOut()
	case Cache:
		c.Expression, c.References = def.GetCache().GetKey(), refs.GetCache()
		s.addInput(c, q.Task)
		if ttl := definition.CacheTTL(def); ttl > 0 {
			c.Ttl = durationpb.New(ttl)
		}
	case Retry:
		c.Expression = def.GetRetry().GetWhen()
		c.Attempt = &historyv1.AttemptView{
			Number: q.End.Attempt, State: q.End.Ended.State, Reason: q.End.Ended.Reason,
			Result: flight.ResultOf(q.End.Response), Record: q.End.Response.GetRecord(),
		}
	case Lock:
		c.Expression, c.References = definition.LockName(def), refs.GetTemplates()
		s.addInput(c, q.Task)
	case Template:
		c.Template, c.References = definition.TemplateSpec(def), refs.GetTemplates()
		s.addInput(c, q.Task)
	}
	return c
}

// addInput adds what expressions of task i see as `input` and `item`: the task's own input and, for an instance, its index and the
// number of instances, and its foreach item, or the key of the stored list that holds the item.
func (s *State) addInput(c *historyv1.Condition, i int) {
	c.Input = structs.Clone(s.core.Definition(i).GetInput())
	if s.core.Group(i) < 0 {
		return
	}
	count, _ := s.flight.InstanceCount(s.core.Group(i))
	for word, n := range map[string]int{"index": s.core.Number(i), "count": count} { //workflowcheck:ignore (into a map again)
		if _, taken := c.Input.Fields[word]; !taken {
			c.Input.Fields[word] = structpb.NewNumberValue(float64(n))
		}
	}
	c.Item, c.Items = s.item(i)
}

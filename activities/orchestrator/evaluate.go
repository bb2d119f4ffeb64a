package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/results"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

const (
	// evaluateBudget bounds the time of one call of Evaluate. The caller asks again about the rest.
	evaluateBudget = time.Second
	// conditionBudget bounds the time for the expressions of one question, in addition to their cost limit.
	conditionBudget = 500 * time.Millisecond
	// conditionTries is how often the expressions of a question may exceed their budget.
	conditionTries = 3
	// maxRenderedBytes is the largest object that Evaluate renders, as JSON.
	maxRenderedBytes = definition.MaxAnswerBytes - 4<<10
	// maxKeyBytes is the longest key of a cached result. Keys are part of the history.
	maxKeyBytes = 16 << 10
)

// Kinds of questions in historyv1.Condition.
const (
	kindCount    = "count"
	kindItems    = "items"
	kindCache    = "cache"
	kindRetry    = "retry"
	kindLock     = "lock"
	kindTemplate = "template"
)

// Evaluate answers questions about expressions in order until its time budget is used up. It answers at least one. An
// expression that cannot be evaluated gets an answer, and so does a result that is missing or unreadable. If the store is
// away, the remaining questions get no answer, and the response says why.
func (c *Control) Evaluate(ctx context.Context, req *historyv1.EvaluateRequest) (*historyv1.EvaluateResponse, error) {
	deadline, patience := time.Now().Add(evaluateBudget), store.Arrival
	view := condition.View{Parents: make(map[string]*historyv1.ParentView, len(req.GetParents())), Workflow: req.GetWorkflow(), Run: req.GetRun()}
	if run := req.GetRun(); run != nil {
		run.Input = req.GetWorkflow().GetInput()
	}
	res := &historyv1.EvaluateResponse{}
	size := 0
	for _, cond := range req.GetConditions() {
		if len(res.GetAnswers()) > 0 && time.Now().After(deadline) {
			break
		}
		began := time.Now()
		answer, err := c.question(ctx, &view, req, cond, patience)
		if errors.Is(err, store.ErrNotFound) {
			// Waiting for a missing value does not count as evaluation, and happens only once.
			deadline, patience = deadline.Add(time.Since(began)), 0
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if away, ok := errors.AsType[awayError](err); ok {
			res.Away = away.Error()
			break
		}
		if err != nil {
			_, broken := errors.AsType[storeError](err)
			answer = &historyv1.ConditionAnswer{Error: err.Error(), Broken: broken}
		}
		answer.Task = cond.GetTask()
		if size += jsonSize(answer); size > definition.MaxAnswerBytes && len(res.GetAnswers()) > 0 {
			break // the caller asks again about the others
		}
		res.Answers = append(res.Answers, answer)
	}
	return res, nil
}

// jsonSize returns the size of a message as JSON, the form that histories contain.
func jsonSize(m proto.Message) int {
	text, err := protojson.Marshal(m)
	if err != nil { // the message contains invalid UTF-8
		return math.MaxInt32
	}
	return len(text)
}

// storeError is an error of the store rather than of an expression.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// awayError is the error of a store that does not respond at all, as opposed to one that lacks a value.
type awayError struct{ error }

func (e awayError) Unwrap() error { return e.error }

// storePause is the time between two tries.
const storePause = 100 * time.Millisecond

// insist calls f until it succeeds or fails for good. If the store does not respond to a probe either, it returns an
// awayError.
func (c *Control) insist(ctx context.Context, run string, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		broken, ok := errors.AsType[storeError](err)
		if !ok || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnreadable) || ctx.Err() != nil {
			return err
		}
		if c.Store.Probe(ctx, run) != nil {
			return awayError{broken}
		}
		if try == store.Tries {
			return err
		}
		select {
		case <-time.After(storePause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// question answers one question. It retries while the store fails to give a value but responds.
func (c *Control) question(ctx context.Context, view *condition.View, req *historyv1.EvaluateRequest, cond *historyv1.Condition, patience time.Duration) (answer *historyv1.ConditionAnswer, err error) {
	err = c.insist(ctx, names.Home(view.Workflow.GetRunId(), req.GetChain()), func() error {
		item, err := c.see(ctx, view, req, cond, patience)
		if err == nil {
			err = inTime(ctx, func(limited context.Context) (err error) {
				answer, err = c.answer(ctx, limited, req, cond, item, *view)
				return err
			})
		}
		return err
	})
	return answer, err
}

// inTime calls f with a time limit, and again if f exceeds the limit. The cost limit already bounds an expression, so a
// slow one means that the machine has stalled.
func inTime(ctx context.Context, f func(limited context.Context) error) error {
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(ctx, conditionBudget)
		err := f(limited)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || try == conditionTries {
			return err
		}
	}
}

// see fills the view for a question: the ancestors that the question reads, the input of the task, and the attempt in
// question. It waits for missing results, which may be on their way. It returns the item of an instance.
func (c *Control) see(ctx context.Context, view *condition.View, req *historyv1.EvaluateRequest, cond *historyv1.Condition, patience time.Duration) (item *structpb.Value, err error) {
	for _, task := range cond.GetReferences() {
		if view.Parents[task] != nil || req.GetParents()[task] == nil {
			continue
		}
		parent, err := results.ResolveView(ctx, c.Store, task, req.GetParents()[task], patience)
		if err != nil {
			return nil, storeError{err}
		}
		view.Parents[task] = parent
	}
	view.Attempt = cond.GetAttempt()
	if key := view.Attempt.GetRecord(); key != "" {
		record, err := c.Store.AwaitResult(ctx, key, patience)
		if err != nil {
			return nil, storeError{fmt.Errorf("read the result of the attempt, which its node may keep in another store: %w", err)}
		}
		view.Attempt = &historyv1.AttemptView{
			Number: view.Attempt.GetNumber(), State: view.Attempt.GetState(), Reason: view.Attempt.GetReason(), Result: record.GetResult(),
		}
	}
	if item, err = c.item(ctx, cond); err != nil {
		return nil, storeError{fmt.Errorf("read the items of %s: %w", cond.GetTask(), err)}
	}
	view.Input = cond.GetInput()
	if _, taken := view.Input.GetFields()["item"]; item != nil && !taken {
		view.Input = &structpb.Struct{Fields: maps.Clone(view.Input.GetFields())}
		if view.Input.Fields == nil {
			view.Input.Fields = map[string]*structpb.Value{}
		}
		view.Input.Fields["item"] = item
	}
	return item, nil
}

// item returns the item of an instance, or nil if there is none.
func (c *Control) item(ctx context.Context, cond *historyv1.Condition) (*structpb.Value, error) {
	_, index, ok := storekey.ParseInstanceName(cond.GetTask())
	if !ok || cond.GetItem() != nil || cond.GetItems() == "" {
		return cond.GetItem(), nil
	}
	items, err := c.lists.Read(ctx, c.Store, cond.GetItems())
	if err != nil || index >= len(items) {
		return nil, err
	}
	return items[index], nil
}

// answer answers one question from a view. limited bounds the time of its expressions. Values that it stores go to the
// home of the run.
func (c *Control) answer(ctx, limited context.Context, req *historyv1.EvaluateRequest, cond *historyv1.Condition, item *structpb.Value, view condition.View) (answer *historyv1.ConditionAnswer, err error) {
	answer = &historyv1.ConditionAnswer{}
	home := names.Home(view.Workflow.GetRunId(), req.GetChain())
	switch kind := cond.GetKind(); kind {
	case "":
		answer.Value, err = c.Evaluator.Evaluate(limited, cond.GetExpression(), view)
		if err == nil && !answer.GetValue() {
			answer.Because = c.Evaluator.Because(cond.GetExpression(), view)
		}
	case kindRetry:
		answer.Value, err = c.Evaluator.Retry(limited, cond.GetExpression(), view)
	case kindCount:
		var count int
		count, err = c.Evaluator.Count(limited, cond.GetExpression(), view)
		answer.Count = int32(count)
	case kindItems:
		list, problem := c.Evaluator.Items(limited, cond.GetExpression(), view)
		if problem != nil {
			return nil, problem
		}
		answer.Count = int32(len(list.GetValues()))
		answer.Items, err = c.keepList(ctx, home, &historyv1.ItemList{Items: list.GetValues()}, false)
	case kindTemplate:
		answer.Rendered, err = c.Evaluator.Render(limited, "spec", cond.GetTemplate(), view)
		if size := jsonSize(answer.GetRendered()); err == nil && size > maxRenderedBytes {
			return nil, fmt.Errorf("spec has %d bytes with its templates replaced; at most %d are allowed", size, maxRenderedBytes)
		}
	case kindLock:
		if answer.Text, err = c.Evaluator.RenderText(limited, "the name of the lock", cond.GetExpression(), view); err == nil {
			err = definition.CheckLockName(cond.GetExpression(), answer.GetText())
		}
	case kindCache:
		if answer.Text, err = c.Evaluator.Key(limited, cond.GetExpression(), view); err != nil {
			return nil, err
		}
		answer.Text = instanceKey(cond, item, answer.GetText())
		if len(answer.GetText()) > maxKeyBytes {
			return nil, fmt.Errorf("the key of the cached result has %d bytes; at most %d are allowed", len(answer.GetText()), maxKeyBytes)
		}
		answer.Cached, err = c.cached(ctx, home, view.Workflow.GetName(), req.GetCacheScope(), cond, answer.GetText())
	default:
		return nil, fmt.Errorf("there are no expressions of kind %q", kind)
	}
	return answer, err
}

package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

const (
	// evaluateBudget is how long one call of Evaluate goes on; what it did not
	// reach is asked again.
	evaluateBudget = time.Second
	// conditionBudget bounds one condition, which its cost limit does too.
	conditionBudget = 500 * time.Millisecond
	// maxResultBytes is the largest final status that is the result of its workflow.
	maxResultBytes = 256 << 10
	// carryPartBytes is the size of a stored part of a RunCarry, so that reading it
	// back stays below Temporal's 2 MB for a payload: as JSON a byte may take six.
	carryPartBytes = 256 << 10
	// maxAnswersBytes bounds what one call of Evaluate says of conditions that could
	// not be evaluated; the others are asked again.
	maxAnswersBytes = 256 << 10
)

// Control has the local activities of the control process that need the store.
// It is safe for concurrent use.
type Control struct {
	Store     *store.Store
	Evaluator *condition.Evaluator
	Placement *Placement
	Logger    *slog.Logger
}

// Evaluate answers conditions, in order, for as long as its time budget lasts;
// at least one is answered. A condition that cannot be evaluated is an answer,
// and so is a result that is not in the store; a store that cannot be read is an error.
func (c *Control) Evaluate(ctx context.Context, req *v1.EvaluateRequest) (*v1.EvaluateResponse, error) {
	deadline, patience := time.Now().Add(evaluateBudget), store.Arrival
	view := condition.View{Parents: make(map[string]*v1.ParentView, len(req.GetParents())), Workflow: req.GetWorkflow()}
	res := &v1.EvaluateResponse{}
	size := 0
	for _, cond := range req.GetConditions() {
		if len(res.GetAnswers()) > 0 && (time.Now().After(deadline) || size > maxAnswersBytes) {
			break
		}
		answer := &v1.ConditionAnswer{Task: cond.GetTask()}
		began := time.Now()
		err := c.see(ctx, &view, req, cond.GetReferences(), patience)
		if errors.Is(err, store.ErrNotFound) {
			// Waiting for what is missing is no evaluation, and is done once for all.
			deadline, patience = deadline.Add(time.Since(began)), 0
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err // tried again
		}
		if answer.Broken = err != nil; !answer.Broken {
			answer.Value, err = c.evaluate(ctx, cond.GetExpression(), view)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			answer.Value, answer.Error = false, err.Error()
		}
		res.Answers = append(res.Answers, answer)
		size += proto.Size(answer)
	}
	return res, nil
}

func (c *Control) evaluate(ctx context.Context, expression string, view condition.View) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, conditionBudget)
	defer cancel()
	return c.Evaluator.Evaluate(ctx, expression, view)
}

// see puts the ancestors that a condition reads into the view, whole. A result that
// is missing may be on its way, and is waited for.
func (c *Control) see(ctx context.Context, view *condition.View, req *v1.EvaluateRequest, references []string, patience time.Duration) error {
	for _, task := range references {
		if view.Parents[task] != nil || req.GetParents()[task] == nil {
			continue
		}
		parent := req.GetParents()[task]
		if parent.GetRecord() != "" {
			var record v1.ExecuteResponse
			if err := c.Store.AwaitMessage(ctx, parent.GetRecord(), &record, patience); err != nil {
				return fmt.Errorf("read the result of %s, which its node may keep in another store: %w", task, err)
			}
			parent = &v1.ParentView{State: parent.GetState(), Result: record.GetResult()}
		}
		view.Parents[task] = parent
	}
	return nil
}

// SaveStatus stores the final status of a run with the events that are not stored
// yet, has the placement queue forget the run, and returns the status as it may be
// kept in the history: without tasks when it is large.
func (c *Control) SaveStatus(ctx context.Context, status *v1.StatusResponse, events *v1.SaveEventsRequest) (*v1.StatusResponse, error) {
	run := status.GetRun()
	c.Placement.Forget(run.GetId())
	if err := c.SaveEvents(ctx, events); err != nil {
		return nil, err
	}
	if err := c.Store.PutMessage(ctx, store.StatusKey(run.GetId(), run.GetGeneration()), status); err != nil {
		return nil, err
	}
	if proto.Size(status) <= maxResultBytes {
		return status, nil
	}
	return &v1.StatusResponse{
		Run: &v1.Run{
			Id: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(), Error: run.GetError(),
			CreatedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(), Generation: run.GetGeneration(),
		},
		Revision:  status.GetRevision(),
		TaskCount: status.GetTaskCount(),
	}, nil
}

// SaveEvents stores a part of a run's events.
func (c *Control) SaveEvents(ctx context.Context, req *v1.SaveEventsRequest) error {
	if len(req.GetEvents()) == 0 {
		return nil
	}
	key := store.EventsKey(req.GetRunId(), req.GetGeneration(), req.GetPart())
	return c.Store.PutMessage(ctx, key, &v1.EventPart{Events: req.GetEvents()})
}

// SaveCarry stores the tasks and the context of a run's state in parts and
// returns the state with the keys of the parts instead.
func (c *Control) SaveCarry(ctx context.Context, run string, generation int32, carry *v1.RunCarry) (*v1.RunCarry, error) {
	kept := &v1.RunCarry{
		CreatedAt: carry.GetCreatedAt(), FirstFailure: carry.GetFirstFailure(),
		Cancelled: carry.GetCancelled(), Revision: carry.GetRevision(), EventParts: carry.GetEventParts(),
	}
	part, size := &v1.RunCarry{Context: carry.GetContext(), Tasks: map[string]*v1.TaskCarry{}}, 0
	flush := func() error {
		key := store.CarryKey(run, generation, int32(len(kept.GetStored())))
		kept.Stored = append(kept.Stored, key)
		err := c.Store.PutMessage(ctx, key, part)
		part, size = &v1.RunCarry{Tasks: map[string]*v1.TaskCarry{}}, 0
		return err
	}
	if err := flush(); err != nil {
		return nil, err
	}
	for name, task := range carry.GetTasks() {
		part.Tasks[name] = task
		if size += proto.Size(task) + len(name); size >= carryPartBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return kept, flush()
}

// LoadCarry returns a part that SaveCarry has stored.
func (c *Control) LoadCarry(ctx context.Context, req *v1.LoadCarryRequest) (*v1.RunCarry, error) {
	var part v1.RunCarry
	if err := c.load(ctx, req.GetKey(), &part); err != nil {
		return nil, err
	}
	return &part, nil
}

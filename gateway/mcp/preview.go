package mcp

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// would is the result of a preview.
type would struct {
	// Would describes what the tool would do, in one line.
	Would string `json:"would"`
	// Now is the current state of the object that the tool would change.
	Now map[string]any `json:"now,omitempty"`
}

// previewTaskState returns what the cancellation of a task would do in the task's current state.
func previewTaskState(ctx context.Context, i *invocation) (any, error) {
	req := i.request.(*v1.CancelTaskRequest)
	got, err := i.Runs.GetRunTask(ctx, connect.NewRequest(&v1.GetRunTaskRequest{Id: req.GetId(), Task: req.GetTask()}))
	if err != nil {
		return nil, err
	}
	if task := got.Msg.GetTask(); task != nil {
		task.Result, task.Attempts = nil, nil
	}
	if instance := got.Msg.GetInstance(); instance != nil {
		instance.Result, instance.Attempts = nil, nil
	}
	now, err := shorten(got.Msg)
	state := got.Msg.GetTask().GetState() + got.Msg.GetInstance().GetState()
	text := fmt.Sprintf("cancel %s of %s, which is %s", req.GetTask(), req.GetId(), state)
	if v1.HasTaskEnded(got.Msg.GetTask()) || v1.HasTaskEnded(got.Msg.GetInstance()) {
		text = fmt.Sprintf("be refused: %s of %s has ended and is %s", req.GetTask(), req.GetId(), state)
	}
	return would{text, now}, err
}

// previewRunState previews the cancellation or the retry of a run.
func previewRunState(ctx context.Context, i *invocation) (any, error) {
	id := i.request.(interface{ GetId() string }).GetId()
	got, err := i.Runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: id, PageSize: 1, Brief: true}))
	if err != nil {
		return nil, err
	}
	run := got.Msg.GetRun()
	now, err := shorten(run)
	_, cancels := i.request.(*v1.CancelRunRequest)
	ended := v1.IsRunTerminal(run.GetState())
	text := fmt.Sprintf("retry %s, which is %s; completed tasks are kept", run.GetId(), run.GetState())
	switch {
	case cancels && !ended:
		text = fmt.Sprintf("cancel %s, which is %s", run.GetId(), run.GetState())
	case cancels:
		text = fmt.Sprintf("be refused: %s has ended and is %s", run.GetId(), run.GetState())
	case !ended:
		text = fmt.Sprintf("be refused: %s is still %s; only ended runs can be retried", run.GetId(), run.GetState())
	}
	return would{text, now}, err
}

// previewDeadLetters previews the retry of dead letters.
func previewDeadLetters(ctx context.Context, i *invocation) (any, error) {
	req := i.request.(*v1.RetryDeadLetterRequest)
	listed, err := i.Runs.ListDeadLetters(ctx, connect.NewRequest(&v1.ListDeadLettersRequest{Run: req.GetRun()}))
	if err != nil {
		return nil, err
	}
	kept := listed.Msg.GetItems()[:0]
	for _, letter := range listed.Msg.GetItems() {
		if req.GetTask() == "" || letter.GetTask() == req.GetTask() {
			kept = append(kept, letter)
		}
	}
	if len(kept) == 0 {
		return would{Would: fmt.Sprintf("be refused: %s has no such dead letter; list_dead_letter_tasks lists them", req.GetRun())}, nil
	}
	count := len(kept)
	listed.Msg.Items = kept[:min(count, maxList)]
	now, err := shorten(listed.Msg)
	return would{fmt.Sprintf("retry %d task(s) of %s with their attempts reset to 0", count, req.GetRun()), now}, err
}

// previewDrain previews draining or undraining a node.
func previewDrain(ctx context.Context, i *invocation) (any, error) {
	name := i.request.(interface{ GetName() string }).GetName()
	got, err := i.Nodes.GetNode(ctx, connect.NewRequest(&v1.GetNodeRequest{Name: name}))
	if err != nil {
		return nil, err
	}
	node := got.Msg.GetNode()
	now, err := shorten(node)
	text := fmt.Sprintf("drain %s: it accepts no new tasks and hands waiting tasks back; its %d running task(s) may finish", name, node.GetRunning())
	if _, undrains := i.request.(*v1.UndrainNodeRequest); undrains {
		text = fmt.Sprintf("put %s, which is %s, back into service", name, node.GetState())
	}
	return would{text, now}, err
}

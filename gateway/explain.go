package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// explainTimeout is how long the placement queue may take to explain something;
// another process takes it over in that time when its owner dies.
const explainTimeout = 10 * time.Second

// ExplainTask says why a task is where it is: what the placement queue thinks of
// each node for it now, and, once it has been given to one, why it was given to
// that one then.
func (g *Gateway) ExplainTask(ctx context.Context, req *connect.Request[v1.ExplainTaskRequest]) (*connect.Response[v1.ExplainTaskResponse], error) {
	id, err := g.resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	v, err := g.reader.read(ctx, id)
	if err != nil {
		return nil, err
	}
	name := req.Msg.GetTask()
	about, err := g.reader.subject(ctx, v, name)
	if err != nil {
		return nil, err
	}
	t := about.shown()
	state := t.GetState()
	res := &v1.ExplainTaskResponse{Task: name, State: state}
	ended := v1.IsTaskTerminal(state)
	said := &v1.ExplainResponse{}
	if needsNode(t.GetType()) {
		said, err = g.explainTask(ctx, id, about)
	}
	if err != nil && !ended {
		return nil, err
	}
	if err != nil {
		g.log.Debug("the placement queue does not explain a task", "run", id, "task", name, "error", err)
	}
	res.Nodes = said.GetNodes()
	if v1.IsTaskWaiting(state) {
		res.Chosen, res.Reason = said.GetChosen(), said.GetReason()
		if waits := waitsFor(v, t); waits != "" {
			res.Reason = waits
		} else if state == v1.TaskQueued && !said.GetHeld() && t.GetError() != "" {
			res.Reason = t.GetError() // it waits in the run, for a lock or its turn
		}
		if res.Reason == "" {
			res.Reason = t.GetError()
		}
	} else {
		res.Chosen = t.GetNode()
		if res.Reason, err = g.whyThere(ctx, v, name); err != nil {
			return nil, err
		}
		if t.Count != nil && !ended {
			res.Reason = t.GetError() // a fan-out may wait, as for its turn to open child workflows
		}
		if res.Reason == "" && !ended {
			res.Reason = said.GetReason()
		}
		if res.Reason == "" && res.Chosen == "" {
			res.Reason = t.GetError()
		}
	}
	return connect.NewResponse(res), nil
}

// needsNode tells whether tasks of a type are given to nodes; the run itself carries out the others.
func needsNode(kind string) bool { return kind != v1.TypeRun && kind != v1.TypeApproval }

// explainTask asks the placement queue about a task or an instance of a run.
func (g *Gateway) explainTask(ctx context.Context, id string, about subject) (*v1.ExplainResponse, error) {
	desc, err := g.reader.describe(ctx, id)
	if err != nil {
		return nil, err
	}
	in, err := g.reader.input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		return nil, err
	}
	req := g.taskRequest(about.name, in.GetDefinition().GetTasks()[about.task], in.GetOptions())
	req.Claim = about.claim()
	return g.askPlacement(ctx, &v1.ExplainRequest{RunId: id, Request: req})
}

// taskRequest is what a run would ask the placement queue for a task.
func (g *Gateway) taskRequest(name string, def *v1.TaskDefinition, options *v1.RunOptions) *v1.TaskRequest {
	return &v1.TaskRequest{
		Task: name, Type: def.GetType(), Constraints: definition.Constraints(def), Resources: def.GetResources(),
		Container: definition.ContainerNeeds(def), Priority: def.GetPriority(), QueuedAt: timestamppb.New(g.config.Now()),
		PlacementTimeout: options.GetPlacementTimeout(),
	}
}

// askPlacement asks the placement queue what it thinks of tasks of a run.
func (g *Gateway) askPlacement(ctx context.Context, ask *v1.ExplainRequest) (*v1.ExplainResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	asked, err := g.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       names.NewExplainID(ask.GetRunId()),
		TaskQueue:                names.ControlQueue,
		WorkflowExecutionTimeout: explainTimeout,
		WorkflowTaskTimeout:      runTaskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, names.ExplainWorkflow, ask)
	if err != nil {
		return nil, fmt.Errorf("ask the placement queue: %w", err)
	}
	var said v1.ExplainResponse
	if err := asked.Get(ctx, &said); err != nil {
		if ctx.Err() != nil || timedOut(err) {
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("the placement queue has not answered within %s; is a gateway up that may own it?", explainTimeout))
		}
		return nil, fmt.Errorf("ask the placement queue: %w", err)
	}
	return &said, nil
}

// waitsFor says what a task that is not in the placement queue waits for; empty:
// it is in the queue.
func waitsFor(v *view, t *v1.Task) string {
	switch {
	case t.GetHeld():
		return "is held back; it waits to be released"
	case v.run.GetState() == v1.RunPaused && !v1.IsTaskTerminal(t.GetState()):
		return "waits for the run to be resumed"
	}
	if t.GetState() == v1.TaskPending {
		var open []string
		for _, parent := range t.GetDependsOn() {
			if p := v.tasks[parent]; p != nil && !v1.IsTaskTerminal(p.brief.GetState()) {
				open = append(open, parent)
			}
		}
		if len(open) > 0 {
			return "waits for " + strings.Join(open, ", ")
		}
	}
	if at := t.GetScheduledAfter(); at != nil && at.AsTime().After(time.Now()) {
		return "waits until " + at.AsTime().UTC().Format(time.RFC3339) + " after a failure"
	}
	return ""
}

// whyThere is why a task was given to its node, as its newest event about that
// says; empty when nothing tells.
func (g *Gateway) whyThere(ctx context.Context, v *view, name string) (string, error) {
	why := ""
	filter := &eventFilter{ListRunEventsRequest: &v1.ListRunEventsRequest{Task: name, Event: v1.EventAssigned}}
	for at := (eventPlace{}); ; {
		page := &eventPage{filter: filter, limit: defaultEventPage}
		next, err := g.readRun(ctx, page, v, at)
		if err != nil {
			return "", err
		}
		for _, e := range page.items {
			why = e.GetDetail()
		}
		if next == nil {
			return why, nil
		}
		at = *next
	}
}

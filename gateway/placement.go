package gateway

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// explainTimeout bounds an explanation by the placement queue. It is long enough for another process to take the queue
// over if its owner dies.
const explainTimeout = 10 * time.Second

// ExplainTask explains the placement of a task: how the placement queue rates each node for it now, and, once it has
// been placed, why it was placed on its node.
func (g *Gateway) ExplainTask(ctx context.Context, req *connect.Request[v1.ExplainTaskRequest]) (*connect.Response[v1.ExplainTaskResponse], error) {
	id, err := g.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	v, err := g.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	name := req.Msg.GetTask()
	about, err := g.reader.TaskRef(ctx, v, name)
	if err != nil {
		return nil, err
	}
	t := about.Brief()
	state := t.GetState()
	res := &v1.ExplainTaskResponse{Task: name, State: state}
	ended := v1.HasTaskEnded(t)
	said := &v1.ExplainResponse{}
	if v1.NeedsNode(t.GetType()) && !endedUnplaced(t) {
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
			res.Reason = t.GetError() // it waits in the run, for a lock or a free slot
		}
		if res.Reason == "" {
			res.Reason = t.GetError()
		}
	} else {
		res.Chosen = t.GetNode()
		if res.Reason, err = g.events.LastDetail(ctx, v, name, v1.EventAssigned); err != nil {
			return nil, err
		}
		if t.Count != nil && !ended {
			res.Reason = t.GetError() // a fan-out may wait too, such as for a slot to open child workflows
		}
		if res.Reason == "" && !ended {
			res.Reason = said.GetReason()
		}
		if res.Reason == "" && res.Chosen == "" {
			res.Reason = t.GetError()
		}
	}
	res.Parents = parentEnds(v, about)
	res.Reason = strings.Join(slices.DeleteFunc(append([]string{res.Reason}, g.explainNotes(ctx, v, about)...), func(note string) bool { return note == "" }), "; ")
	return connect.NewResponse(res), nil
}

// endedUnplaced reports whether a task ended for a reason unrelated to nodes.
func endedUnplaced(t *v1.Task) bool {
	return v1.IsTaskTerminal(t.GetState()) && t.GetNode() == "" && t.GetReason() != v1.ReasonPlacementTimeout && t.GetReason() != v1.ReasonNoSession
}

// parentEnds returns how the parents of a task ended if their ends, or what its condition read of them, kept it from
// starting.
func parentEnds(v *runview.View, about runview.TaskRef) (ends []*v1.ParentEnd) {
	t := about.Brief()
	switch t.GetReason() {
	case v1.ReasonUpstream, v1.ReasonWhen, v1.ReasonCondition, v1.ReasonConditionError:
	default:
		return nil
	}
	for _, name := range t.GetDependsOn() {
		if p := v.Tasks[name]; p != nil {
			ends = append(ends, &v1.ParentEnd{Task: name, State: p.Brief.GetState(), Reason: phrase.Because(p.Brief.GetReason(), p.Brief.GetError())})
		}
	}
	return ends
}

// explainNotes returns further notes on the placement of a task: what holds it up on its node, how it ended there, and
// why it was moved off the previous node.
func (g *Gateway) explainNotes(ctx context.Context, v *runview.View, about runview.TaskRef) []string {
	t := about.Brief()
	notes := []string{t.GetNotice()}
	if v1.HasTaskFailed(t) && t.GetNode() != "" {
		notes = append(notes, t.GetError())
	}
	if about.Claim() <= 1 { // it has been on at most one node
		return notes
	}
	moved, err := g.events.LastDetail(ctx, v, about.Name, v1.EventReassigned)
	if err != nil {
		g.log.Debug("the events of a task could not be read", "run", v.Run.GetId(), "task", about.Name, "error", err)
	}
	if moved != "" {
		notes = append(notes, "it was moved before: "+moved)
	}
	return notes
}

// explainTask queries the placement queue about a task or instance of a run.
func (g *Gateway) explainTask(ctx context.Context, id string, about runview.TaskRef) (*v1.ExplainResponse, error) {
	desc, err := g.reader.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	in, err := g.reader.Input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		return nil, err
	}
	req := g.taskRequest(about.Name, in.GetDefinition().GetTasks()[about.TaskName], in.GetOptions())
	req.Claim = about.Claim()
	return g.askPlacement(ctx, &v1.ExplainRequest{RunId: id, Request: req})
}

// taskRequest returns the request that a run would send to the placement queue for a task.
func (g *Gateway) taskRequest(name string, def *v1.TaskDefinition, options *v1.RunOptions) *v1.TaskRequest {
	return &v1.TaskRequest{
		Task: name, Type: def.GetType(), Constraints: definition.Constraints(def), Resources: def.GetResources(),
		Container: definition.ContainerNeeds(def), Priority: def.GetPriority(), QueuedAt: timestamppb.New(g.config.Now()),
		PlacementTimeout: definition.PlacementTimeout(def, options.GetPlacementTimeout()),
	}
}

// askPlacement queries the placement queue about tasks of a run.
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
		if ctx.Err() != nil || rpcerror.IsTimeout(err) {
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("the placement queue has not answered within %s; is a gateway up that may own it?", explainTimeout))
		}
		return nil, fmt.Errorf("ask the placement queue: %w", err)
	}
	return &said, nil
}

// waitsFor returns what a task outside the placement queue waits for, or "" if the task is in the queue.
func waitsFor(v *runview.View, t *v1.Task) string {
	switch {
	case t.GetHeld():
		return phrase.Because("is held back", t.GetError())
	case v.Run.GetState() == v1.RunPaused && !v1.HasTaskEnded(t):
		return phrase.Because("waits for the run to be resumed", v.Run.GetError())
	}
	if t.GetState() == v1.TaskPending {
		var open []string
		for _, parent := range t.GetDependsOn() {
			if p := v.Tasks[parent]; p != nil && !v1.HasTaskEnded(p.Brief) {
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

const (
	// plansAtOnce is the number of kinds of tasks in one query to the placement queue, and maxPlanAsks the maximum
	// number of queries for one plan.
	plansAtOnce = 64
	maxPlanAsks = 16
	// planNodeBytes bounds the size of the nodes in a plan. Tasks beyond it get only their summary line.
	planNodeBytes = 2 << 20
)

// PlanRun describes what a run of a definition would do, without starting anything.
func (g *Gateway) PlanRun(ctx context.Context, req *connect.Request[v1.PlanRunRequest]) (*connect.Response[v1.PlanRunResponse], error) {
	in, warnings, err := g.prepare(ctx, req.Msg.GetSubmit())
	if err != nil {
		return nil, err
	}
	if _, err := packed(in); err != nil {
		return nil, err
	}
	def := in.GetDefinition()
	res := &v1.PlanRunResponse{Name: def.GetName(), Input: in.GetInput(), Warnings: warnings}
	levels := map[string]int32{}
	for _, name := range definition.Order(def) {
		task := def.GetTasks()[name]
		for _, parent := range task.GetDependsOn() {
			levels[name] = max(levels[name], levels[parent]+1)
		}
		res.Tasks = append(res.Tasks, &v1.PlannedTask{
			Task: name, Type: task.GetType(), Level: levels[name], DependsOn: task.GetDependsOn(),
			StartsWhen: startsWhen(task, in.GetReferences()[name].GetTasks()), Instances: plannedInstances(task),
		})
	}
	if err := g.planPlacement(ctx, in, res.Tasks); err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

// triggers describes each value of `when` in words.
var triggers = map[string]string{
	"all_success":    "all its parents have succeeded",
	"all_done":       "all its parents have ended",
	"always":         "all its parents have ended",
	"all_failed":     "all its parents have failed",
	"one_success":    "all its parents have ended and one has succeeded",
	"one_failed":     "all its parents have ended and one has failed",
	"none_failed":    "all its parents have ended and none has failed",
	onFailureRun:     "all its parents have ended, whatever has become of them",
	conditionAlone:   "all its parents have ended",
	conditionGuarded: "all its parents have ended and none has failed that the condition does not mention",
}

// The trigger kinds of tasks without `when`.
const (
	onFailureRun     = "run"
	conditionAlone   = "condition"
	conditionGuarded = "guarded condition"
)

// startsWhen describes in words what lets a task start. mentioned lists the tasks that its condition reads. The result
// is "" for the default: all parents have ended, none has failed and one has succeeded.
func startsWhen(task *v1.TaskDefinition, mentioned []string) string {
	kind := task.GetWhen()
	isGuard := func(parent string) bool { return !slices.Contains(mentioned, parent) }
	switch {
	case kind != "" || len(task.GetDependsOn()) == 0:
	case task.GetCondition() != "" && task.GetOnFailure() != onFailureRun && slices.ContainsFunc(task.GetDependsOn(), isGuard):
		kind = conditionGuarded
	case task.GetCondition() != "":
		kind = conditionAlone
	case task.GetOnFailure() == onFailureRun:
		kind = onFailureRun
	}
	var parts []string
	if kind != "" {
		parts = append(parts, triggers[kind])
	}
	if task.GetCondition() != "" {
		parts = append(parts, task.GetCondition()+" is true")
	}
	return strings.Join(parts, " and ")
}

// plannedInstances returns the number of instances of a task, or the expression that gives it, or "" if the task does
// not fan out.
func plannedInstances(task *v1.TaskDefinition) string {
	fan, ok := definition.Fan(task)
	switch {
	case !ok:
		return ""
	case fan.Expression == "":
		return strconv.Itoa(fan.Count)
	case fan.Foreach:
		return "one for each of " + fan.Expression
	}
	return fan.Expression
}

// planPlacement queries the placement queue where each of the tasks could run now. It asks only once for tasks with the
// same requirements.
func (g *Gateway) planPlacement(ctx context.Context, in *v1.RunInput, tasks []*v1.PlannedTask) error {
	var asks []*v1.TaskRequest
	kinds := map[string][]*v1.PlannedTask{}
	var order []string
	for _, t := range tasks {
		if !v1.NeedsNode(t.GetType()) {
			t.Placement = "needs no node"
			continue
		}
		req := g.taskRequest(t.GetTask(), in.GetDefinition().GetTasks()[t.GetTask()], in.GetOptions())
		kind, err := kindOf(req)
		if err != nil {
			return err
		}
		if kinds[kind] == nil {
			asks, order = append(asks, req), append(order, kind)
		}
		kinds[kind] = append(kinds[kind], t)
	}
	run := names.NewRunID(in.GetDefinition().GetName())
	size, asked := 0, 0
	for range maxPlanAsks {
		if asked == len(asks) {
			break
		}
		said, err := g.askPlacement(ctx, &v1.ExplainRequest{RunId: run, More: asks[asked:min(len(asks), asked+plansAtOnce)]})
		if err != nil {
			return err
		}
		for _, one := range said.GetMore() {
			for _, t := range kinds[order[asked]] {
				t.Placement = whereTo(one)
				if size += proto.Size(one); size < planNodeBytes {
					t.Nodes = one.GetNodes()
				}
			}
			asked++
		}
	}
	for _, kind := range order[asked:] {
		for _, t := range kinds[kind] {
			t.Placement = fmt.Sprintf("not looked at: the tasks want %d different things of a node", len(order))
		}
	}
	return nil
}

// kindOf returns a key that is equal for tasks with the same placement requirements.
func kindOf(req *v1.TaskRequest) (string, error) {
	bare := &v1.TaskRequest{Type: req.GetType(), Constraints: req.GetConstraints(), Resources: req.GetResources(), Container: req.GetContainer()}
	key, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare)
	return string(key), err
}

// whereTo summarises in one line how many nodes could run a task now, or why none can.
func whereTo(said *v1.ExplainResponse) string {
	fit := 0
	for _, n := range said.GetNodes() {
		if n.GetFeasible() {
			fit++
		}
	}
	if fit == 0 && said.GetReason() != "" {
		return said.GetReason()
	}
	return fmt.Sprintf("%d of %d nodes", fit, len(said.GetNodes()))
}

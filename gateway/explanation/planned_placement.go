package explanation

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// plansAtOnce is the number of kinds of tasks in one query to the placement queue, and maxPlanAsks the maximum
	// number of queries for one plan.
	plansAtOnce = 64
	maxPlanAsks = 16
	// planNodeBytes bounds the size of the nodes in a plan. Tasks beyond it get only their summary line.
	planNodeBytes = 2 << 20
)

// planPlacement queries the placement queue where each of the tasks could run now. It asks only once for tasks with the
// same requirements.
func (p planner) planPlacement(ctx context.Context, in *historyv1.RunInput, tasks []*v1.PlannedTask) error {
	var asks []*historyv1.TaskRequest
	kinds := map[string][]*v1.PlannedTask{}
	var order []string
	for _, t := range tasks {
		if !v1.NeedsNode(t.GetType()) {
			t.Placement = "needs no node"
			continue
		}
		req := newTaskRequest(t.GetTask(), v1.TaskNamed(in.GetDefinition(), t.GetTask()), in.GetOptions(), p.now())
		kind, err := placementKey(req)
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
		said, err := p.queue.explain(ctx, &historyv1.ExplainRequest{RunId: run, More: asks[asked:min(len(asks), asked+plansAtOnce)]})
		if err != nil {
			return err
		}
		for _, one := range said.GetMore() {
			for _, t := range kinds[order[asked]] {
				t.Placement = placementSummary(one)
				if size += proto.Size(one); size < planNodeBytes {
					t.Nodes = one.GetNodes()
				}
			}
			asked++
		}
	}
	for _, kind := range order[asked:] {
		for _, t := range kinds[kind] {
			t.Placement = fmt.Sprintf("not checked: the tasks have %d different sets of requirements", len(order))
		}
	}
	return nil
}

// placementKey returns a key that is equal for tasks with the same placement requirements.
func placementKey(req *historyv1.TaskRequest) (string, error) {
	bare := &historyv1.TaskRequest{Type: req.GetType(), Constraints: req.GetConstraints(), Resources: req.GetResources(), Container: req.GetContainer(), Needs: req.GetNeeds(), Gang: req.GetGang()}
	key, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare)
	return string(key), err
}

// placementSummary summarises in one line how many nodes could run a task now, or why none can.
func placementSummary(said *historyv1.ExplainResponse) string {
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

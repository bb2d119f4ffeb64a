package runview

import (
	"context"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Items returns the list of a `foreach`, or the key under which it is stored. For an open run it comes from the
// workflow, for an ended run from the last status or the definition.
func (r *Reader) Items(ctx context.Context, v *View, task string) (*historyv1.Items, error) {
	if !v1.IsRunTerminal(v.Run.GetState()) {
		answer, err := r.QueryInstances(ctx, v.Run.GetId(), &historyv1.InstancesRequest{Task: task, Limit: 1})
		return answer.GetItems(), err
	}
	var status historyv1.StatusResponse
	err := r.store.GetMessage(ctx, storekey.Status(v.Home(), v.Run.GetGeneration()), &status)
	if items := status.GetItems()[task]; err != nil || items != nil {
		return items, err
	}
	desc, err := r.Describe(ctx, v.Run.GetId())
	if err != nil {
		return nil, err
	}
	in, err := r.Input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	return &historyv1.Items{List: v1.TaskNamed(in.GetDefinition(), task).GetForeach().GetListValue()}, err
}

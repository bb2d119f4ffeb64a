package run

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/names"
	"switchyard/workflows/notification"
)

// maxNotifiedInput is the largest input of a run, in bytes, that expressions of notifications see. Larger ones are left out.
const maxNotifiedInput = 64 << 10

// notify starts the workflow that tells people about an event of the run, or of a task, if the definition names anyone for it. It
// returns once Temporal has accepted the start, so that the run may end. header holds the run as it is now.
func (r *run) notify(event, task string, header *v1.Run) {
	if r.Input.GetPartition() != nil {
		return // its run has the event, too
	}
	entries := notification.Entries(r.Input.GetDefinition().GetNotify(), event)
	if len(entries) == 0 {
		return
	}
	in := &historyv1.NotifyInput{Event: event, Task: task, Chain: r.selfChain, At: timestamppb.New(r.now()), Notify: entries, Run: &historyv1.RunView{
		Id: header.GetId(), Name: header.GetName(), State: header.GetState(), Reason: header.GetReason(), Error: header.GetError(),
		Generation: r.Input.GetGeneration(), Trigger: r.wanted.Trigger, SubmittedBy: r.commands.SubmittedBy, Batch: r.Input.GetBatch(),
	}}
	if proto.Size(r.Input.GetInput()) <= maxNotifiedInput {
		in.Run.Input = r.Input.GetInput()
	}
	id := names.NotifyWorkflowID(r.Self, in.GetRun().GetGeneration(), event, task)
	r.calls.Charge(calls.ChildCharge + 2*proto.Size(in))
	future := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(r.ctx, workflow.ChildWorkflowOptions{
		WorkflowID: id, TaskQueue: names.ControlQueue, WorkflowTaskTimeout: childTaskTimeout,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, StaticSummary: event + " of " + r.Self,
	}), names.NotifyWorkflow, in)
	if err := future.GetChildWorkflowExecution().Get(r.ctx, nil); err != nil {
		workflow.GetLogger(r.ctx).Warn("people are not told about an event; it may have been told before a reset", "notification", id, "error", err)
	}
}

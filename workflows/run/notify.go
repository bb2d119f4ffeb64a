package run

import (
	"cmp"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/notification"
	"switchyard/workflows/options"
)

// fleetNotifyChange names the version of the workflow from which on an open run asks for the entries of the fleet.
const fleetNotifyChange = "fleet-notify"

// fleetNotify returns the entries of the fleet. It asks for them once in each execution.
func (r *run) fleetNotify() []*v1.Notification {
	if r.fleet != nil || r.isChild() || workflow.GetVersion(r.ctx, fleetNotifyChange, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return r.fleet.GetEntries()
	}
	r.fleet = &historyv1.FleetNotify{}
	if err := r.calls.MustNow("read whom the fleet tells", names.FleetNotifyActivity, r.fleet); err != nil {
		r.logUntold(err)
	}
	return r.fleet.GetEntries()
}

// notify starts the workflow that tells people how the run has ended, if the definition or the fleet names anyone for it. It returns
// once Temporal has accepted the start, so that the run may end. header holds the run as it is now, and fleet the entries of the fleet.
func (r *run) notify(event string, header *v1.Run, fleet []*v1.Notification) {
	if started := r.startNotify(&historyv1.NotifyInput{Event: event}, header, fleet); started != nil {
		r.logUntold(started.Get(r.ctx, nil))
	}
}

// notifyUnbegun starts the workflow that tells people about the end of a run that has not begun, with what is known of it.
func (r *run) notifyUnbegun(header *v1.Run) {
	if r.Input == nil {
		r.Input = r.received
	}
	if r.selfChain == "" && r.received.GetPartition() == nil {
		r.selfChain = chainOf(workflow.GetInfo(r.root), r.received.GetChain())
	}
	r.notify(v1.NotifyEvent(header.GetState()), header, r.fleetNotify())
}

// notifyOpen starts the workflow that tells people about an event of the open run or of a task, if the definition or the fleet names
// anyone for it. detail is what else is to be said, or "".
func (r *run) notifyOpen(event string, i int, detail string) {
	task := ""
	if i != eventlog.WholeRun {
		task = r.core.Name(i)
	}
	if started := r.startNotify(&historyv1.NotifyInput{Event: event, Task: task, Detail: dag.OneLine(detail)}, &v1.Run{State: r.commands.OpenState()}, r.fleetNotify()); started != nil {
		r.calls.Watch(started, func(f workflow.Future) { r.logUntold(f.Get(r.ctx, nil)) })
	}
}

// startNotify starts the workflow for an event of the run, which header describes. The future is ready when Temporal has accepted the start; nil if there is no one to
// tell.
func (r *run) startNotify(in *historyv1.NotifyInput, header *v1.Run, fleet []*v1.Notification) workflow.Future {
	if r.Input.GetPartition() != nil {
		return nil // its run has the event, too
	}
	in.Notify = notification.Entries(notification.OfRun(r.Input, fleet), in.GetEvent())
	if len(in.GetNotify()) == 0 {
		return nil
	}
	in.Chain, in.At, in.Run = r.selfChain, timestamppb.New(r.now()), &historyv1.RunView{
		Id: r.Self, Name: cmp.Or(r.Input.GetDefinition().GetName(), r.received.GetWorkflow()), State: header.GetState(), Reason: header.GetReason(), Error: header.GetError(),
		Generation: r.Input.GetGeneration(), Trigger: r.wanted.Trigger, SubmittedBy: r.commands.SubmittedBy, Batch: r.Input.GetBatch(), Input: notification.Input(r.Input),
	}
	r.calls.Charge(calls.ChildCharge + 2*proto.Size(in))
	return workflow.ExecuteChildWorkflow(workflow.WithChildOptions(r.ctx, workflow.ChildWorkflowOptions{
		WorkflowID: names.NotifyWorkflowID(r.Self, r.Input.GetGeneration(), in.GetEvent(), in.GetTask()), TaskQueue: names.ControlQueue, WorkflowTaskTimeout: childTaskTimeout,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, StaticSummary: in.GetEvent() + " of " + r.Self,
		Priority: options.NotifyPriority(),
	}), names.NotifyWorkflow, in).GetChildWorkflowExecution()
}

// logUntold logs that the workflow for an event could not be started, if err says so.
func (r *run) logUntold(err error) {
	if err != nil {
		workflow.GetLogger(r.ctx).Warn("people are not told about an event; it may have been told before a reset", "error", err)
	}
}

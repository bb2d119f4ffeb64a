package run

import (
	"cmp"
	"errors"
	"slices"

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

const (
	// fleetNotifyChange names the version of the workflow from which on an open run asks for the entries of the fleet, and outboxChange
	// the one from which on a run leaves it to the leader to start Notify.
	fleetNotifyChange = "fleet-notify"
	outboxChange      = "notify-outbox"

	tellSummary = "record an event that people are told about"
)

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

// notify tells people how the run has ended, if the definition or the fleet names anyone for it. It returns once the event is in the
// outbox, so that the run may end. header holds the run as it is now, and fleet the entries of the fleet.
func (r *run) notify(event string, header *v1.Run, fleet []*v1.Notification) {
	switch in := r.notifyInput(&historyv1.NotifyInput{Event: event}, header, fleet); {
	case in == nil:
	case r.hasOutbox():
		r.untold = append(r.untold, in)
	default:
		r.logUntold(r.startNotify(in).Get(r.ctx, nil))
	}
	r.logUntold(r.tellNow())
}

// notifyUnbegun tells people about the end of a run that has not begun, with what is known of it.
func (r *run) notifyUnbegun(header *v1.Run) {
	if r.Input == nil {
		r.Input = r.received
	}
	if r.selfChain == "" && r.received.GetPartition() == nil {
		r.selfChain = chainOf(workflow.GetInfo(r.root), r.received.GetChain())
	}
	r.notify(v1.NotifyEvent(header.GetState()), header, r.fleetNotify())
}

// notifyOpen tells people about an event of the open run or of a task, if the definition or the fleet names anyone for it. detail is
// what else is to be said, or "".
func (r *run) notifyOpen(event string, i int, detail string) {
	task := ""
	if i != eventlog.WholeRun {
		task = r.core.Name(i)
	}
	in := &historyv1.NotifyInput{Event: event, Task: task, Detail: dag.OneLine(detail)}
	if event != v1.NotifyLate && task != "" {
		in.Inputs = r.flight.ApprovalOf(i).Spec.GetInputs()
	}
	switch in := r.notifyInput(in, &v1.Run{State: r.commands.OpenState()}, r.fleetNotify()); {
	case in == nil:
	case r.hasOutbox():
		r.untold = append(r.untold, in)
		r.calls.Must(tellSummary, names.TellActivity, func(f workflow.Future) {
			r.untold = slices.DeleteFunc(r.untold, func(untold *historyv1.NotifyInput) bool { return untold == in })
			r.logUntold(f.Get(r.ctx, nil))
		}, in)
	case event != v1.NotifyReminded: // runs without an outbox did not tell of reminders
		r.calls.Watch(r.startNotify(in), func(f workflow.Future) { r.logUntold(f.Get(r.ctx, nil)) })
	}
}

// tellNow puts the events into the outbox that are not known to be in it, before the execution ends. The outbox takes an event twice
// as one. It returns ErrInterrupted like MustNow.
func (r *run) tellNow() error {
	for len(r.untold) > 0 {
		err := r.calls.MustNow(tellSummary, names.TellActivity, nil, r.untold[0])
		if errors.Is(err, calls.ErrInterrupted) {
			return err
		}
		r.logUntold(err)
		r.untold = r.untold[1:]
	}
	return nil
}

// hasOutbox reports whether the leader starts the workflows that tell people, and not the run, which is slowed down by that.
func (r *run) hasOutbox() bool {
	return workflow.GetVersion(r.ctx, outboxChange, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// notifyInput completes what people are told about an event of the run, which header describes. It returns nil if there is no one to tell.
func (r *run) notifyInput(in *historyv1.NotifyInput, header *v1.Run, fleet []*v1.Notification) *historyv1.NotifyInput {
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
	return in
}

// startNotify starts the workflow for an event. The future is ready when Temporal has accepted the start.
func (r *run) startNotify(in *historyv1.NotifyInput) workflow.Future {
	r.calls.Charge(calls.ChildCharge + 2*proto.Size(in))
	return workflow.ExecuteChildWorkflow(workflow.WithChildOptions(r.ctx, workflow.ChildWorkflowOptions{
		WorkflowID: notification.WorkflowID(in), TaskQueue: names.ControlQueue, WorkflowTaskTimeout: childTaskTimeout,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, StaticSummary: in.GetEvent() + " of " + r.Self,
		Priority: options.NotifyPriority(),
	}), names.NotifyWorkflow, in).GetChildWorkflowExecution()
}

// logUntold logs that people are not told about an event, if err says so.
func (r *run) logUntold(err error) {
	if err != nil {
		workflow.GetLogger(r.ctx).Warn("people are not told about an event; it may have been told before a reset", "error", err)
	}
}

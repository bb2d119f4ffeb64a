package run

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
)

// finish reports the end of the run to the store, to Temporal, and to the placement queue, which then forgets the run and its
// placements.
func (r *run) finish(end *dag.End) (*historyv1.StatusResponse, error) {
	r.awaitAbandonedEnd()
	r.awaitGivenUp()
	now, by := r.now(), r.commands.CancelledBy
	if end.Reason == v1.ReasonRejected {
		by = r.commands.Approval.GetBy()
	}
	r.log.Add(now, end.State, eventlog.WholeRun, "", 0, 0, end.Error, append(eventlog.CauseFacts(end.Reason, end.Error), eventlog.KeyBy.Of(by))...)
	final := r.status.Final(end, now)
	final.Chain, final.Partitions = r.selfChain, r.fanOuts.Reports()
	final.EventSlices, final.NextEvent = r.log.StoredParts(), r.log.Next()
	if r.log.Len() > 0 {
		final.EventSlices++
	}
	var fleet historyv1.FleetNotify
	if err := r.calls.MustNow("save its status", names.SaveStatusActivity, &fleet, final, r.unstoredEvents()); err != nil {
		workflow.GetLogger(r.ctx).Error("could not store the final status", "error", err)
	}
	final.Checkpoints = nil // the next generation reads them from the store
	kept := workflowResult(final, r.isChild())
	kept.FinalReason = end.Final
	r.status.End(end, now) // only after it is stored: until then the run is open
	r.setDeadLetters()
	r.endAttributes(end.State, end.Error)
	r.lastReport()
	r.flight.FreeSlot()
	r.sendLockRequests()
	r.calls.Charge(2 * maxResultBytes)
	r.refuseUpdates(names.RunEndedError, command.ErrJustEnded)
	r.notify(v1.NotifyEvent(end.State), final.GetRun(), fleet.GetEntries())
	switch end.State {
	case v1.RunCompleted:
		return kept, nil
	case v1.RunCancelled:
		return nil, temporal.NewCanceledError(kept)
	default:
		return nil, temporal.NewApplicationErrorWithOptions(end.Error, end.Reason,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{kept}})
	}
}

// maxResultBytes is the largest final status that becomes the result of the workflow. As JSON it takes about twice as much.
const maxResultBytes = 128 << 10

// workflowResult returns the workflow result for a final status. A large status, or that of a child, is only in the store: the
// result then holds how the run has ended and what locates the stored status.
func workflowResult(status *historyv1.StatusResponse, child bool) *historyv1.StatusResponse {
	if !child && proto.Size(status) <= maxResultBytes {
		return status
	}
	run := status.GetRun()
	return &historyv1.StatusResponse{
		Run: &v1.Run{
			Id: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(), Error: run.GetError(),
			CreatedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(), Generation: run.GetGeneration(),
		},
		Revision:  status.GetRevision(),
		TaskCount: status.GetTaskCount(),
		Chain:     status.GetChain(),
	}
}

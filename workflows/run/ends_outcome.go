package run

import (
	"cmp"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/status"
)

// dispatchEnd is the end of a task's dispatch.
type dispatchEnd struct {
	assignment
	number         int32     // attempt number
	ended          dag.Ended // as the core receives it
	res            *v1.ExecuteResponse
	outcome        string           // what the end implies about the node; "" if nothing
	unacknowledged bool             // it is unknown whether and how the attempt ended
	continues      bool             // it runs outside the nodes, and continues there if it was moved
	update         *structpb.Struct // what it adds to the context; nil if nothing
	// checkpoint is what the attempt left in the file $SWITCHYARD_CHECKPOINT, or nil if nothing new.
	checkpoint *v1.Checkpoint
}

// attemptEnd returns the end as the status shows it.
func (d dispatchEnd) attemptEnd() status.AttemptEnd {
	return status.AttemptEnd{
		Claim: d.claim, Number: d.number, Node: d.node, GPUs: d.gpus, NUMANode: d.numaNode,
		Ended: d.ended, Response: d.res, Outcome: d.outcome, Unacknowledged: d.unacknowledged, Continues: d.continues, Checkpoint: d.checkpoint,
	}
}

// attemptAnswer returns the answer of an attempt. A failed attempt carries its answer in the details of the activity's error.
func attemptAnswer(ctx workflow.Context, f workflow.Future) (*v1.ExecuteResponse, error) {
	res := &v1.ExecuteResponse{}
	err := f.Get(ctx, res)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == names.AttemptFailedError {
		err = app.Details(res)
	}
	return res, err
}

// dispatchEnds returns the ends of a dispatch's members, and what they imply about the node, from the result of the activity.
func (es *ends) dispatchEnds(a assignment, members []int, att *attempt, res *v1.ExecuteResponse, err error) (ends []dispatchEnd, outcome string) {
	if len(members) > 1 {
		return es.batchEnds(a, members, att, res, err)
	}
	a.task, a.claim = members[0], es.core.Task(members[0]).Claim
	d := es.newEnd(a)
	if err != nil {
		es.classifyFailure(&d, err)
		d.ended.ExitCode = -1
	} else {
		es.copyAnswer(&d, res)
	}
	return []dispatchEnd{d}, d.outcome
}

// newEnd returns the end of a dispatch with no result yet.
func (es *ends) newEnd(a assignment) dispatchEnd {
	return dispatchEnd{
		assignment: a, number: es.core.Task(a.task).Attempt, res: &v1.ExecuteResponse{},
		ended: dag.Ended{Task: a.task, Claim: a.claim, ExitCode: -1},
	}
}

// copyAnswer copies the answer of a node to the end of a dispatch.
func (es *ends) copyAnswer(d *dispatchEnd, res *v1.ExecuteResponse) {
	d.res, d.checkpoint = res, res.GetCheckpoint()
	d.ended.State, d.ended.Reason, d.ended.Error = res.GetState(), res.GetReason(), res.GetError()
	d.ended.Node = res.GetNode()
	d.ended.NoRetry = v1.IsFinalReason(d.ended.Reason)
	d.outcome = outcomeOf(d.ended.State, d.ended.Reason)
	d.unacknowledged = isUnacknowledged(res)
	d.update = res.GetResult().GetContextUpdate()
	d.ended.ExitCode = cmp.Or(res.GetResult(), status.NothingRan).GetExitCode()
}

// isUnacknowledged reports whether an attempt may have completed although its answer does not state that.
func isUnacknowledged(res *v1.ExecuteResponse) bool {
	return isCutShort(res.GetState(), res.GetReason()) || res.GetState() == v1.AttemptMoved && res.GetReason() == v1.ReasonLeaseLost
}

// maxLostLeases is how many times in a row an attempt may lose its lease on a live node without using up a retry. Beyond it, a
// network that keeps failing uses up the retries.
const maxLostLeases = 3

// judgeLostLease decides the fate of the task of a started attempt that ended because its lease was lost. A retryable task is
// placed again without counting an attempt. Any other task is lost, because its attempt may have done its work. judgeLostLease
// returns what the end implies about the node.
func (es *ends) judgeLostLease(att *attempt, ends []dispatchEnd, outcome string) string {
	for k := range ends {
		d := &ends[k]
		e := &d.ended
		isMoved := e.State == v1.AttemptMoved && e.Reason == v1.ReasonLeaseLost
		isExcused := att.excuse != "" && e.State == v1.TaskLost && e.Reason == v1.ReasonNodeLost
		if !isMoved && !isExcused || att.stopped[e.Task] {
			continue
		}
		e.State, e.Reason, e.Error = v1.AttemptMoved, v1.ReasonLeaseLost, cmp.Or(att.excuse, e.Error)
		switch {
		case !es.core.IsRetryable(e.Task):
			e.State = v1.TaskLost
		case es.status.LostLeases(e.Task) >= maxLostLeases:
			e.State = v1.TaskLost
			e.Error += fmt.Sprintf("; %d times in a row count as an attempt", maxLostLeases)
		}
		if att.excuse != "" {
			d.outcome = v1.OutcomeMoved
			return v1.OutcomeMoved
		}
		return outcome // no later member of the batch had started
	}
	return outcome
}

// outcomeOf returns what an answer implies about the node.
func outcomeOf(state, reason string) string {
	switch {
	case state == v1.TaskCancelled:
		return ""
	case isCutShort(state, reason):
		return v1.OutcomeLost
	case state != v1.AttemptMoved:
		return v1.OutcomeDone
	}
	switch reason {
	case v1.ReasonNoRoom, v1.ReasonDraining, v1.ReasonIncarnation, v1.ReasonNoExecutor:
		// Placement had not received this state yet and would choose the node again and again.
		return v1.OutcomeRefused
	case v1.ReasonNotStarted:
		return v1.OutcomeSuspect
	}
	return v1.OutcomeMoved
}

// classifyFailure sets the end of a dispatch whose activity returned no answer. The task itself has neither succeeded nor
// failed.
func (es *ends) classifyFailure(d *dispatchEnd, err error) {
	set := func(state, reason, text string) { d.ended.State, d.ended.Reason, d.ended.Error = state, reason, text }
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		d.outcome, d.unacknowledged = v1.OutcomeLost, true
		switch timeout.TimeoutType() {
		case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
			d.outcome = v1.OutcomeSuspect
			set(v1.AttemptMoved, v1.ReasonNotPickedUp, "the node did not pick up the task")
		case enumspb.TIMEOUT_TYPE_HEARTBEAT:
			beat := lastBeat(timeout)
			d.checkpoint = beat.GetCheckpoint()
			if !beat.GetSpawned() {
				d.outcome = v1.OutcomeSuspect
				set(v1.AttemptMoved, v1.ReasonNotStarted, "the node accepted the task and went silent before starting it")
				return
			}
			set(v1.TaskLost, v1.ReasonNodeLost, "the node was lost while the task ran")
			d.res.StartedAt = beat.GetStartedAt()
		default:
			d.outcome = v1.OutcomeSystem
			set(v1.TaskFailed, v1.ReasonTimeout, "the node did not end the task in time")
		}
		return
	}
	if temporal.IsCanceledError(err) {
		set(v1.TaskCancelled, v1.ReasonCancelled, "")
		d.ended.NoRetry = true
		return
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		set(v1.TaskFailed, v1.ReasonSystem, app.Message())
		d.ended.NoRetry, d.outcome = app.NonRetryable(), v1.OutcomeSystem
		return
	}
	set(v1.TaskFailed, v1.ReasonPayload, err.Error()) // the answer could not be decoded
	d.ended.NoRetry = true
}

// addUnknownOutcome extends the error of a lost attempt that is not retried: its outcome is unknown.
func addUnknownOutcome(ended *dag.Ended) {
	if isCutShort(ended.State, ended.Reason) {
		ended.Error += "; it may have done its work, but it recorded no result, and it is not retried"
	}
}

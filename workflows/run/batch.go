package run

import (
	"cmp"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/status"
)

// batchEnds is dispatchEnds of a batch: each member whose end is known has that end.
// Of the others the first is the one that was running: it ends as the dispatch did
// if that has failed. What was not reached is to be placed again.
func (r *run) batchEnds(a assignment, members []int, att *attempt, res *v1.ExecuteResponse, err error) (ends []dispatchEnd, outcome string) {
	whole := r.newEnd(a)
	recorded := res // also where err is not nil: what instances have recorded then
	if err != nil {
		r.broken(&whole, err)
		res = r.lastProgress(err)
	} else {
		whole.outcome, whole.unacknowledged = outcomeOf(res.GetState(), res.GetReason()), isUnacknowledged(res)
	}
	lost := err == nil && res.GetState() == v1.TaskLost
	if lost { // it is as if nothing had come
		whole.ended.State, whole.ended.Reason, whole.ended.Error = res.GetState(), res.GetReason(), res.GetError()
	}
	answers := make(map[int32]*v1.ExecuteResponse, len(members))
	addAnswers(answers, res)
	addAnswers(answers, recorded)
	running := (err != nil || lost) && whole.ended.State != v1.AttemptMoved
	for _, m := range members {
		own := a
		own.task, own.claim = m, r.core.Task(m).Claim
		d := r.newEnd(own)
		answer := answers[int32(r.core.Number(m))]
		switch {
		case answer != nil && (answer.GetState() != v1.TaskCancelled || att.stopped[m]):
			r.take(&d, answer)
		case answer != nil: // it was stopped with another one
			d.ended.State, d.ended.Reason, d.checkpoint = v1.AttemptMoved, v1.ReasonBatch, answer.GetCheckpoint()
		case running && (whole.ended.State != v1.TaskCancelled || att.stopped[m]):
			d.ended.State, d.ended.Reason, d.ended.Error = whole.ended.State, whole.ended.Reason, whole.ended.Error
			d.ended.NoRetry, d.unacknowledged, d.outcome = whole.ended.NoRetry, whole.unacknowledged, whole.outcome
			d.checkpoint = res.GetCheckpoint()
			running = whole.ended.State == v1.TaskCancelled || whole.ended.Reason == v1.ReasonPayload
		default:
			d.ended.State, d.unacknowledged, d.outcome = v1.AttemptMoved, whole.unacknowledged, v1.OutcomeMoved
			d.ended.Reason = cmp.Or(whole.ended.Reason, res.GetReason(), v1.ReasonBatch)
			d.ended.Error = cmp.Or(whole.ended.Error, res.GetError())
			if whole.outcome == v1.OutcomeRefused {
				d.outcome = v1.OutcomeRefused
			}
		}
		ends = append(ends, d)
	}
	return ends, whole.outcome
}

// addAnswers adds what the answer to a batch says of its members, by number.
func addAnswers(to map[int32]*v1.ExecuteResponse, res *v1.ExecuteResponse) {
	for _, result := range res.GetBatch() {
		to[result.GetIndex()] = memberAnswer(res, result)
	}
}

// memberAnswer is what the node says of one member of a batch, as if it had gone
// by itself. Store.MemberAnswer does the same for readers of records.
func memberAnswer(res *v1.ExecuteResponse, m *v1.MemberResult) *v1.ExecuteResponse {
	one := &v1.ExecuteResponse{
		State: cmp.Or(m.GetState(), v1.TaskCompleted), Reason: m.GetReason(), Error: m.GetError(),
		Result: cmp.Or(m.GetResult(), status.EmptyResult), Record: m.GetRecord(),
		AssignedAt: res.GetAssignedAt(), Node: res.GetNode(), Checkpoint: m.GetCheckpoint(),
	}
	if from := res.GetAssignedAt(); from != nil && m.GetStartedMs() >= 0 {
		started := from.AsTime().Add(time.Duration(m.GetStartedMs()) * time.Millisecond)
		one.StartedAt = timestamppb.New(started)
		one.CompletedAt = timestamppb.New(started.Add(time.Duration(m.GetTookMs()) * time.Millisecond))
	}
	return one
}

// lastProgress is what is known of a batch whose activity did not return an
// answer: what its last heartbeat said, and the record that this names.
func (r *run) lastProgress(err error) *v1.ExecuteResponse {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok {
		return &v1.ExecuteResponse{}
	}
	beat := lastBeat(timeout)
	res := &v1.ExecuteResponse{AssignedAt: beat.GetStartedAt(), Batch: beat.GetBatch()}
	if key := beat.GetRecord(); key != "" {
		if err := r.mustNow("load what has ended of a batch", names.LoadProgressActivity, res, key); err != nil {
			workflow.GetLogger(r.ctx).Warn("what had ended of a batch could not be read", "record", key, "error", err)
		}
	}
	res.Checkpoint = beat.GetCheckpoint()
	return res
}

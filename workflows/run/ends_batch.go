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

// batchEnds returns the dispatch ends of a batch. A member with a known end gets that end. The first of the others is the one
// that was running; it ends like the dispatch if the dispatch failed. Members that were not reached are placed again.
func (es *ends) batchEnds(a assignment, members []int, att *attempt, res *v1.ExecuteResponse, err error) (ends []dispatchEnd, outcome string) {
	whole := es.newEnd(a)
	recorded := res // with an error too: what the instances had recorded by then
	if err != nil {
		es.classifyFailure(&whole, err)
		res = es.lastProgress(err)
	} else {
		whole.outcome, whole.unacknowledged = outcomeOf(res.GetState(), res.GetReason()), isUnacknowledged(res)
	}
	lost := err == nil && res.GetState() == v1.TaskLost
	if lost { // as if no answer had come
		whole.ended.State, whole.ended.Reason, whole.ended.Error = res.GetState(), res.GetReason(), res.GetError()
	}
	answers := make(map[int32]*v1.ExecuteResponse, len(members))
	addAnswers(answers, res)
	addAnswers(answers, recorded)
	running := (err != nil || lost) && whole.ended.State != v1.AttemptMoved
	for _, m := range members {
		own := a
		own.task, own.claim = m, es.core.Task(m).Claim
		d := es.newEnd(own)
		answer := answers[int32(es.core.Number(m))]
		switch {
		case answer != nil && (answer.GetState() != v1.TaskCancelled || att.stopped[m]):
			es.copyAnswer(&d, answer)
		case answer != nil: // it was stopped together with another member
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

// addAnswers adds the answers to the members of a batch, keyed by member number.
func addAnswers(to map[int32]*v1.ExecuteResponse, res *v1.ExecuteResponse) {
	for _, result := range res.GetBatch() {
		to[result.GetIndex()] = memberAnswer(res, result)
	}
}

// memberAnswer returns the answer to one member of a batch as if the member had run alone. Store.MemberAnswer does the same for
// readers of records.
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

// lastProgress returns what is known of a batch whose activity returned no answer: the content of its last heartbeat and the
// record that the heartbeat names.
func (es *ends) lastProgress(err error) *v1.ExecuteResponse {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok {
		return &v1.ExecuteResponse{}
	}
	beat := lastBeat(timeout)
	res := &v1.ExecuteResponse{AssignedAt: beat.GetStartedAt(), Batch: beat.GetBatch()}
	if key := beat.GetRecord(); key != "" {
		if err := es.store.mustNow("load the ended members of a batch", names.LoadProgressActivity, res, key); err != nil {
			workflow.GetLogger(es.ctx).Warn("could not read the ended members of a batch", "record", key, "error", err)
		}
	}
	res.Checkpoint = beat.GetCheckpoint()
	return res
}

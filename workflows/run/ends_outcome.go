package run

import (
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// attemptAnswer returns what is known when the activity of an attempt has ended. A failed attempt carries the answer of its node
// in the details of the activity's error.
func attemptAnswer(ctx workflow.Context, f workflow.Future) flight.Answer {
	res := &v1.ExecuteResponse{}
	err := f.Get(ctx, res)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == names.AttemptFailedError {
		err = app.Details(res)
	}
	if err == nil {
		return flight.Answer{Response: res, Beat: &v1.ExecuteProgress{}}
	}
	return unanswered(err)
}

// unanswered returns what is known when the activity of an attempt has ended with an error.
func unanswered(err error) flight.Answer {
	answer := flight.Answer{Kind: flight.Unreadable, Response: &v1.ExecuteResponse{}, Beat: &v1.ExecuteProgress{}}
	timeout, timedOut := errors.AsType[*temporal.TimeoutError](err)
	app, failed := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case timedOut:
		answer.Beat = lastBeat(timeout)
		switch timeout.TimeoutType() {
		case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
			answer.Kind = flight.NotPickedUp
		case enumspb.TIMEOUT_TYPE_HEARTBEAT:
			answer.Kind = flight.Silent
		default:
			answer.Kind = flight.Overdue
		}
	case temporal.IsCanceledError(err):
		answer.Kind = flight.Cancelled
	case failed:
		answer.Kind, answer.Text, answer.Final = flight.Broken, app.Message(), app.NonRetryable()
	default:
		answer.Text = err.Error()
	}
	return answer
}

// loadProgress returns what the last heartbeat tells about the members of a batch: its content, and the record that it names.
func (at *attempts) loadProgress(answer flight.Answer) *v1.ExecuteResponse {
	if !answer.TimedOut() {
		return nil
	}
	beat := answer.Beat
	res := &v1.ExecuteResponse{AssignedAt: beat.GetStartedAt(), Batch: beat.GetBatch()}
	if key := beat.GetRecord(); key != "" {
		if err := at.store.mustNow("load the ended members of a batch", names.LoadProgressActivity, res, key); err != nil {
			workflow.GetLogger(at.ctx).Warn("could not read the ended members of a batch", "record", key, "error", err)
		}
	}
	res.Checkpoint = beat.GetCheckpoint()
	return res
}

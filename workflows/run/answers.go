package run

import (
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// attemptAnswer returns what is known when the activity of an attempt has ended. A failed attempt carries the answer of its node
// in the details of the activity's error.
func attemptAnswer(ctx workflow.Context, f workflow.Future) flight.Answer {
	res := &historyv1.ExecuteResponse{}
	err := f.Get(ctx, res)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == names.AttemptFailedError {
		err = app.Details(res)
	}
	if err == nil {
		return flight.Answer{Response: res, Beat: &historyv1.ExecuteProgress{}}
	}
	return unanswered(err)
}

// unanswered returns what is known when the activity of an attempt has ended with an error.
func unanswered(err error) flight.Answer {
	answer := flight.Answer{Kind: flight.Unreadable, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{}}
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

// lastBeat returns the last heartbeat of an attempt, never nil. An unreadable heartbeat counts as that of a started process, to
// be on the safe side.
func lastBeat(timeout *temporal.TimeoutError) *historyv1.ExecuteProgress {
	if !timeout.HasLastHeartbeatDetails() {
		return &historyv1.ExecuteProgress{}
	}
	var progress historyv1.ExecuteProgress
	if timeout.LastHeartbeatDetails(&progress) != nil {
		return &historyv1.ExecuteProgress{Spawned: true}
	}
	return &progress
}

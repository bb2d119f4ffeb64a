package view

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
)

// Update shows task i, which has changed in the core, and logs the change.
func (s *Status) Update(i int, now time.Time) {
	e, rec := &s.entries[i], s.core.Task(i)
	end, wasOver, isOver := e.ended, v1.IsTaskTerminal(e.state), v1.IsTaskTerminal(rec.State)
	e.ended = nil
	s.logChange(i, rec, end, now)
	if rec.State == v1.TaskAssigned && e.state != v1.TaskAssigned {
		e.assignedAt, e.startedAt, e.scheduledAfter = timestamppb.New(now), nil, nil
	}
	switch {
	case wasOver && !isOver: // it was requeued, or waits for a task that was
		e.assignedAt, e.startedAt, e.completedAt, e.steeredBy = nil, nil, nil, ""
	case isOver && end != nil && end.State != v1.AttemptMoved:
		e.completedAt = end.CompletedAt
	case isOver && e.completedAt == nil:
		e.completedAt = timestamppb.New(now)
	}
	if s.core.FansOut(i) {
		e.expand(rec, now)
	}
	e.state, e.claim = rec.State, rec.Claim
	s.Touch(i)
}

// expand shows when the instances of a task were created, and when the first of them could start. A task that fans out over
// nothing completes at once.
func (e *entry) expand(rec dag.Record, now time.Time) {
	switch {
	case rec.State == v1.TaskRunning:
		e.expandedAt = cmp.Or(e.expandedAt, timestamppb.New(now))
		if e.startedAt == nil || e.state != v1.TaskRunning {
			e.startedAt = timestamppb.New(now)
		}
	case rec.State == v1.TaskCompleted && e.expandedAt == nil:
		e.startedAt = timestamppb.New(now)
	}
}

// SetRetryTime shows when task i is retried.
func (s *Status) SetRetryTime(i int, at time.Time, now time.Time) {
	e, rec := &s.entries[i], s.core.Task(i)
	if e.scheduledAfter == nil { // otherwise a previous execution has logged it
		until := at.UTC().Round(time.Millisecond).Format(time.RFC3339Nano)
		s.log.Add(now, v1.EventRetried, i, "", rec.Attempt, rec.Claim, "waits until "+until, eventlog.KeyUntil.Of(until))
	}
	e.scheduledAfter = timestamppb.New(at)
	s.Touch(i)
}

// SetStartedAt records when the running attempt of task i started.
func (s *Status) SetStartedAt(i int, at *timestamppb.Timestamp) { s.entries[i].startedAt = at }

// SetSteeredBy records who requeues, cancels or kills task i, for the event of that.
func (s *Status) SetSteeredBy(i int, who string) { s.entries[i].steeredBy = who }

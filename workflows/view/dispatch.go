package view

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/eventlog"
)

// queuedTime returns when the newest attempt of task i requested a placement, or nil if it has not.
func (s *shown) queuedTime(i int) *timestamppb.Timestamp {
	if at := s.records.Of(i).QueuedAt; !at.IsZero() {
		return timestamppb.New(at)
	}
	return nil
}

// SetPlace records why the newest claim of task i goes to its node, the facts of that placement, and the number of the first
// instance of its batch, or -1 if it is in no batch.
func (s *shown) SetPlace(i int, why string, lead int, there ...eventlog.Fact) {
	s.entries[i].why, s.entries[i].lead, s.entries[i].place = why, int32(lead), there
}

// SetRetryTime shows when task i is retried.
func (s *shown) SetRetryTime(i int, at time.Time, now time.Time) {
	e := &s.entries[i]
	if e.scheduledAfter == nil { // otherwise a previous execution has logged it
		until := at.UTC().Format(time.RFC3339Nano)
		s.log.Add(now, v1.EventRetried, i, "", e.attempt, e.claim, "waits until "+until, eventlog.KeyUntil.Of(until))
	}
	s.change(i, func(e *entry) { e.scheduledAfter = timestamppb.New(at) })
}

// SetStartedAt records when the running attempt of task i started.
func (s *shown) SetStartedAt(i int, at *timestamppb.Timestamp) { s.entries[i].startedAt = at }

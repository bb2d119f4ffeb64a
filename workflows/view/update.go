package view

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// Update shows the core's record of task i and logs the change.
func (s *shown) Update(i int, rec dag.Record, now time.Time) {
	e := &s.entries[i]
	end := e.ended
	e.ended = nil
	s.logChange(i, rec, end, now)
	e.claim = rec.Claim
	if rec.State == v1.TaskAssigned && e.state != v1.TaskAssigned {
		e.assignedAt, e.startedAt, e.scheduledAfter = timestamppb.New(now), nil, nil
	}
	switch {
	case !v1.IsTaskTerminal(rec.State) && v1.IsTaskTerminal(e.state): // it was requeued, or waits for a task that was
		s.forget(i)
	case v1.IsTaskTerminal(rec.State) && end != nil && end.State != v1.AttemptMoved:
		e.completedAt = end.CompletedAt
	case v1.IsTaskTerminal(rec.State) && e.completedAt == nil:
		e.completedAt = timestamppb.New(now)
	}
	s.countGroup(i, e.state, rec, now)
	e.state, e.reason, e.text = rec.State, rec.Reason, rec.Error
	e.node, e.attempt = rec.Node, rec.Attempt
	s.recount(i)
	s.Touch(i)
}

// forget clears the end of task i.
func (s *shown) forget(i int) {
	e := &s.entries[i]
	e.assignedAt, e.startedAt, e.completedAt = nil, nil, nil
	if m := e.extras; m != nil {
		m.steeredBy = ""
	}
}

// countGroup counts the tasks whose instances begin or end.
func (s *shown) countGroup(i int, was string, rec dag.Record, now time.Time) {
	if s.entries[i].group >= 0 || !s.graph.FansOut(i) {
		return
	}
	switch {
	case rec.State == v1.TaskRunning:
		if f := s.fanOut(i); f != nil {
			f.createdAt = cmp.Or(f.createdAt, timestamppb.New(now))
		}
		if e := &s.entries[i]; e.startedAt == nil || was != v1.TaskRunning {
			e.startedAt = timestamppb.New(now)
		}
	case rec.State == v1.TaskCompleted && s.fanOut(i) == nil: // it fans out over nothing
		s.extrasOf(i).fanOut = &fanOut{counts: map[string]int32{}}
		s.entries[i].startedAt = timestamppb.New(now)
	}
}

package view

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
)

const (
	// maxAttempts is the most attempts shown for a task.
	maxAttempts = 100
	// maxAgentEvents is the most agent turns and tool calls logged for an attempt. The newest are kept.
	maxAgentEvents = 100
)

// attemptOf returns the message for an attempt that has ended.
func attemptOf(d flight.End, now time.Time) *v1.Attempt {
	a := &v1.Attempt{
		Attempt: d.Attempt, Claim: d.Ended.Claim, Node: cmp.Or(d.Ended.Node, d.Node),
		State: d.Ended.State, Reason: d.Ended.Reason, Error: d.Ended.Error, ExitCode: d.Ended.ExitCode,
		AssignedAt: d.Response.GetAssignedAt(), StartedAt: d.Response.GetStartedAt(), CompletedAt: d.Response.GetCompletedAt(),
		Gpus: d.GPUs, NumaNode: d.NUMANode, Container: d.Response.GetResult().GetContainer(), Warning: d.Response.GetResult().GetWarning(),
	}
	if a.Node != d.Node { // the answer is the record of an attempt on another node
		a.Gpus, a.NumaNode = nil, nil
	}
	if a.CompletedAt == nil {
		a.CompletedAt = timestamppb.New(now)
	}
	return a
}

// EndAttempt shows the end of a dispatch of task i, which the record of the task already has; Update then shows the resulting
// record of the core. Times that the node does not report are set to now.
func (s *Status) EndAttempt(i int, end flight.End, now time.Time) {
	e := &s.entries[i]
	attempt := attemptOf(end, now)
	if attempt.AssignedAt == nil && attempt.Node == end.Node {
		attempt.AssignedAt = e.assignedAt // the node could not report it
	}
	e.ended = attempt
	if end.IsSuspect() {
		s.Touch(i)
	}
	if events := end.Response.GetAgentEvents(); len(events) > 0 {
		e.agentEvents = events[max(0, len(events)-maxAgentEvents):]
	}
	if end.Ended.State == v1.AttemptMoved {
		if attempt.GetStartedAt() != nil && !end.Continues {
			s.Touch(i)
			e.addAttempt(attempt)
		}
		return
	}
	s.Touch(i)
	if attempt.AssignedAt != nil {
		e.assignedAt = attempt.AssignedAt
	}
	e.startedAt, e.completedAt = attempt.StartedAt, nil
	if attempt.State == v1.TaskCompleted && s.core.Group(i) >= 0 && len(e.attempts) == 0 {
		return // the instance itself holds everything there is to show
	}
	e.addAttempt(attempt)
}

// addAttempt adds the newest attempt that has ended.
func (e *entry) addAttempt(a *v1.Attempt) {
	e.attempts = append(e.attempts, a)
	e.attempts = e.attempts[max(0, len(e.attempts)-maxAttempts):]
}

// whyAgain returns why the program of a task was ended before it was started again under the same number, or "" if it was not.
func (e *entry) whyAgain() string {
	if n := len(e.attempts); n > 0 && e.attempts[n-1].GetState() == v1.AttemptMoved {
		return e.attempts[n-1].GetError()
	}
	return ""
}

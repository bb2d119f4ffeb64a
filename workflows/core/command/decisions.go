package command

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Misdirected returns why a decision is not the one that is meant, or "" if it is. The text completes "the decision is not valid: ...".
func Misdirected(d, meant *historyv1.Decision) string {
	switch {
	case d == nil:
		return "it was not sent through a gateway; use `switchyard runs approve` or `reject`"
	case d.GetWorkflow() != meant.GetWorkflow() || d.GetTask() != meant.GetTask():
		return "it was signed for another task or run"
	case d.GetExecution() != meant.GetExecution():
		return "it was signed for another generation of the run"
	case d.GetVerdict() != meant.GetVerdict():
		return "it was signed as " + d.GetVerdict()
	}
	return ""
}

// meant returns a command with the person and reason that its decision names, if the update is a decision.
func (u Update) meant(c *historyv1.TaskCommand) *historyv1.TaskCommand {
	if d := c.GetDecision(); d != nil && u.Verdict != "" {
		return &historyv1.TaskCommand{Task: c.GetTask(), By: d.GetBy(), Reason: d.GetReason(), Input: d.GetInput(), Decision: d}
	}
	return c
}

// RequestApproval makes the run wait for an approval, and returns true, if it needs one. An approval holds for all generations
// with the same definition; a rejection, or a wait that was cancelled, does not.
func (s *State) RequestApproval() bool {
	in := s.Flight.Input
	version := in.GetDefinitionVersion()
	isApproved := s.Approval.GetState() == v1.ApprovalApproved && s.Approval.GetDefinitionVersion() == version
	switch {
	case in.GetPartition() != nil || isApproved || in.GetState() != nil:
		return false
	case !in.GetNeedsApproval():
		if s.AwaitsApproval() {
			s.Approval = nil
		}
		return false
	}
	s.Approval = &v1.RunApproval{State: v1.ApprovalPending, DefinitionVersion: version}
	return true
}

// AwaitsApproval reports whether the run may not start before an operator has approved it.
func (s *State) AwaitsApproval() bool { return s.Approval.GetState() == v1.ApprovalPending }

// decideRun records a person's decision about the run.
func (s *State) decideRun(u Update, c *historyv1.TaskCommand, now time.Time) Effect {
	s.Approval = &v1.RunApproval{
		State: u.Verdict, By: c.GetBy(), At: timestamppb.New(now), Reason: c.GetReason(), DefinitionVersion: s.Flight.Input.GetDefinitionVersion(),
	}
	return ShowApproval{s.Approval}
}

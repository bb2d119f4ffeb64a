package flight

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/phrase"
)

// Approval is the state of a task that waits for a person's approval.
type Approval struct {
	Spec    *v1.ApprovalSpec
	Given   []*historyv1.ApprovalRecord // approvals so far
	message string
	until   time.Time // zero if there is no time limit
}

// needed returns how many people must approve.
func (a *Approval) needed() int { return max(1, int(a.Spec.GetApprovals())) }

// progress returns how many people have approved, or "" if one approval is enough.
func (a *Approval) progress() string {
	if a.needed() == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d have approved)", len(a.Given), a.needed())
}

// Text returns what the task shows while it waits, or "" if it no longer does.
func (a *Approval) Text() string {
	if a == nil {
		return ""
	}
	return strings.TrimSpace(a.message + a.progress())
}

// ApprovalOf returns the approval that a task waits for, or nil if it waits for none.
func (s *State) ApprovalOf(i int) *Approval {
	if u := s.units[i]; u != nil {
		return u.approval
	}
	return nil
}

// Approvals returns the number of tasks that wait for an approval.
func (s *State) Approvals() int { return s.approvals }

// askPerson makes a task wait for an approval and starts its time limit.
func (s *State) askPerson(u *Unit, spec *structpb.Struct, now time.Time) {
	i := u.Lead
	a := &Approval{Spec: definition.Approval(s.core.Definition(i)), message: spec.GetFields()["message"].GetStringValue()}
	if limit := definition.ApprovalTimeout(a.Spec); limit > 0 {
		a.until = now.Add(limit)
	}
	u.approval = a
	s.approvals++
	s.do(Show{
		Task: i, Event: v1.EventPaused, Text: phrase.Because(v1.ReasonApproval, a.message),
		Facts: []eventlog.Fact{eventlog.KeyReason.Of(v1.ReasonApproval), eventlog.KeyMessage.Of(a.message)},
	})
	s.raise(dag.Placed{Task: i, Claim: u.Claim})
	s.limitApproval(u, now)
}

// limitApproval starts the timer of an approval, if it has a time limit.
func (s *State) limitApproval(u *Unit, now time.Time) {
	if until := u.approval.until; !until.IsZero() {
		s.do(StartTimer{max(until.Sub(now), time.Millisecond), "approval of " + s.core.Name(u.Lead), Timer{kind: approvalTimer, unit: u}})
	}
}

// approvalTimedOut ends a task whose approval was not decided in time.
func (s *State) approvalTimedOut(u *Unit, now time.Time) {
	if u.approval == nil {
		return
	}
	c := &historyv1.TaskCommand{Reason: "no decision within " + u.approval.Spec.GetTimeout()}
	if u.approval.Spec.GetOnTimeout() == v1.OnTimeoutApprove {
		s.do(LogCommand{u.Lead, v1.EventApproved, c})
		s.decided(u, c, dag.Ended{State: v1.TaskCompleted}, now)
		return
	}
	s.reject(u, c, now)
}

// Approve adds the approval of a person to those of a task that waits for it. With the last one that it needs, the task completes.
func (s *State) Approve(i int, c *historyv1.TaskCommand, now time.Time) []Effect {
	u := s.units[i]
	a := u.approval
	s.do(LogCommand{i, v1.EventApproved, c})
	a.Given = append(a.Given, &historyv1.ApprovalRecord{By: c.GetBy(), Reason: c.GetReason(), At: timestamppb.New(now)})
	if len(a.Given) < a.needed() {
		s.do(Show{Task: i})
	} else {
		s.decided(u, c, dag.Ended{State: v1.TaskCompleted}, now)
	}
	return s.take()
}

// Reject ends a task that waits for an approval.
func (s *State) Reject(i int, c *historyv1.TaskCommand, now time.Time) []Effect {
	s.reject(s.units[i], c, now)
	return s.take()
}

func (s *State) reject(u *Unit, c *historyv1.TaskCommand, now time.Time) {
	s.do(LogCommand{u.Lead, v1.EventRejected, c})
	s.decided(u, c, dag.Ended{
		State: v1.TaskRejected, Reason: v1.ReasonRejected, ExitCode: -1, NoRetry: true,
		Error: phrase.Because(phrase.By(v1.TaskRejected, c.GetBy()), c.GetReason()),
	}, now)
}

// decided ends a task that waited for approval. The output of the task holds who decided last, when and why, and every approval if
// the task needed several.
func (s *State) decided(u *Unit, c *historyv1.TaskCommand, ended dag.Ended, now time.Time) {
	output := decisionFields(c.GetBy(), c.GetReason(), now)
	if u.approval.needed() > 1 {
		list := &structpb.ListValue{}
		for _, given := range u.approval.Given {
			list.Values = append(list.Values, structpb.NewStructValue(decisionFields(given.GetBy(), given.GetReason(), given.GetAt().AsTime())))
		}
		output.Fields["approvals"] = structpb.NewListValue(list)
	}
	s.endApproval(u, &v1.TaskResult{ExitCode: ended.ExitCode, Output: output}, ended)
}

// decisionFields returns who decided, why and when. Unknown fields are left out.
func decisionFields(by, reason string, at time.Time) *structpb.Struct {
	fields := map[string]*structpb.Value{"at": structpb.NewStringValue(at.UTC().Format(time.RFC3339))}
	if by != "" {
		fields["by"] = structpb.NewStringValue(by)
	}
	if reason != "" {
		fields["reason"] = structpb.NewStringValue(reason)
	}
	return &structpb.Struct{Fields: fields}
}

// endApproval ends a task that waits for an approval.
func (s *State) endApproval(u *Unit, result *v1.TaskResult, ended dag.Ended) {
	if !u.approval.until.IsZero() {
		s.do(StopTimer{Timer{kind: approvalTimer, unit: u}})
	}
	u.approval = nil
	s.approvals--
	s.endElsewhere(u.Lead, &historyv1.ExecuteResponse{Result: result}, ended)
}

// restoreApproval continues with a task that waited for an approval in the previous execution.
func (s *State) restoreApproval(i int, t *historyv1.TaskState, now time.Time) {
	u := s.track(&Unit{Lead: i, Members: []int{i}, Claim: s.claimOf(i), Phase: Elsewhere, lock: s.lockOf(i)})
	a := &Approval{Spec: definition.Approval(s.core.Definition(i)), Given: t.GetApprovals()}
	a.message = strings.TrimSpace(strings.TrimSuffix(" "+t.GetTask().GetError(), a.progress()))
	if t.GetApprovalUntil() != nil {
		a.until = t.GetApprovalUntil().AsTime()
	}
	u.approval = a
	s.approvals++
	s.limitApproval(u, now)
}

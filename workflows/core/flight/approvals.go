package flight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
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
	remind  time.Time // when people are reminded; zero if they are not, or have been
}

// Fill returns the values of the inputs of the approval: those that the first approver has filled in, or the given ones with the
// defaults. The error says why the given ones are not accepted.
func (a *Approval) Fill(given *structpb.Struct) (*structpb.Struct, error) {
	if len(a.Given) == 0 || a.Given[0].GetInput() == nil {
		//workflowcheck:ignore (the inputs are looked at in the order of their names)
		return definition.ApprovalInput(a.Spec, given)
	}
	filled := a.Given[0].GetInput()
	names := slices.Sorted(maps.Keys(given.GetFields())) //workflowcheck:ignore (the order of the map is lost by sorting)
	for _, name := range names {
		//workflowcheck:ignore (whether two values are equal does not depend on an order)
		if !proto.Equal(given.GetFields()[name], filled.GetFields()[name]) {
			return nil, fmt.Errorf("%s has approved it with %s; approve the same, or reject it", a.Given[0].GetBy(), definition.FilledIn(filled))
		}
	}
	return filled, nil
}

// WhyNotApprover returns why the person of a signed decision may not decide about the task, or "" if the person may.
func (a *Approval) WhyNotApprover(task string, d *historyv1.Decision, isSubmitter bool) string {
	return definition.WhyNotApprover(task, a.Spec.GetApprovers(), d.GetBy(), d.GetRole(), isSubmitter)
}

// needed returns how many people must approve.
func (a *Approval) needed() int { return max(1, int(a.Spec.GetApprovals())) }

// progress returns how many people have approved and what they have filled in, or "" if one approval is enough.
func (a *Approval) progress() string {
	if a.needed() == 1 {
		return ""
	}
	filled := ""
	if len(a.Given) > 0 && len(a.Given[0].GetInput().GetFields()) > 0 {
		//workflowcheck:ignore (the inputs are looked at in the order of their names)
		filled = " with " + definition.FilledIn(a.Given[0].GetInput())
	}
	return fmt.Sprintf(" (%d of %d have approved%s)", len(a.Given), a.needed(), filled)
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
	if delay := definition.ReminderDelay(a.Spec); delay > 0 {
		a.remind = now.Add(delay)
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

// limitApproval starts the timers of an approval: of its time limit and of its reminder, if it has them.
func (s *State) limitApproval(u *Unit, now time.Time) {
	if until := u.approval.until; !until.IsZero() {
		s.do(StartTimer{max(until.Sub(now), time.Millisecond), "approval of " + s.core.Name(u.Lead), Timer{kind: approvalTimer, unit: u}})
	}
	if remind := u.approval.remind; !remind.IsZero() {
		s.do(StartTimer{max(remind.Sub(now), time.Millisecond), "reminder of " + s.core.Name(u.Lead), Timer{kind: reminderTimer, unit: u}})
	}
}

// remindPeople logs that an approval still waits.
func (s *State) remindPeople(u *Unit) {
	if u.approval == nil {
		return
	}
	u.approval.remind = time.Time{}
	text := u.approval.Text()
	s.do(Show{
		Task: u.Lead, Event: v1.EventReminded, Text: phrase.Because("waits for "+v1.ReasonApproval, text),
		Facts: []eventlog.Fact{eventlog.KeyReason.Of(v1.ReasonApproval), eventlog.KeyMessage.Of(text)},
	})
}

// approvalTimedOut ends a task whose approval was not decided in time.
func (s *State) approvalTimedOut(u *Unit, now time.Time) {
	if u.approval == nil {
		return
	}
	c := &historyv1.TaskCommand{Reason: "no decision within " + u.approval.Spec.GetTimeout()}
	if u.approval.Spec.GetOnTimeout() == v1.OnTimeoutApprove {
		s.do(LogCommand{u.Lead, v1.EventApproved, c})
		c.Input, _ = u.approval.Fill(nil) // a checked spec has every value that is required
		s.decided(u, c, dag.Ended{State: v1.TaskCompleted}, now)
		return
	}
	s.reject(u, c, now)
}

// Approve adds the approval of a person to those of a task that waits for it. With the last one that it needs, the task completes.
// The input of the command has the defaults, too.
func (s *State) Approve(i int, c *historyv1.TaskCommand, now time.Time) []Effect {
	u := s.units[i]
	a := u.approval
	s.do(LogCommand{i, v1.EventApproved, c})
	a.Given = append(a.Given, &historyv1.ApprovalRecord{By: c.GetBy(), Reason: c.GetReason(), At: timestamppb.New(now), Input: c.GetInput()})
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

// decided ends a task that waited for approval. The output of the task holds who decided last, when and why, every approval if the
// task needed several, and the input of an approval.
func (s *State) decided(u *Unit, c *historyv1.TaskCommand, ended dag.Ended, now time.Time) {
	output := decisionFields(c.GetBy(), c.GetReason(), now)
	if ended.State == v1.TaskCompleted {
		maps.Copy(output.Fields, c.GetInput().GetFields()) //workflowcheck:ignore (into a map again)
	}
	if u.approval.needed() > 1 {
		list := &structpb.ListValue{}
		for _, given := range u.approval.Given {
			list.Values = append(list.Values, structpb.NewStructValue(decisionFields(given.GetBy(), given.GetReason(), given.GetAt().AsTime())))
		}
		output.Fields["approvals"] = structpb.NewListValue(list)
	}
	s.endApproval(u, &v1.TaskResult{ExitCode: ended.ExitCode, Output: output}, ended)
}

// decisionFields returns who decided, why and when. An unknown person and a reason that was not given are "", so that expressions
// can read both fields after every decision.
func decisionFields(by, reason string, at time.Time) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"by": structpb.NewStringValue(by), "reason": structpb.NewStringValue(reason), "at": structpb.NewStringValue(at.UTC().Format(time.RFC3339)),
	}}
}

// endApproval ends a task that waits for an approval.
func (s *State) endApproval(u *Unit, result *v1.TaskResult, ended dag.Ended) {
	if !u.approval.until.IsZero() {
		s.do(StopTimer{Timer{kind: approvalTimer, unit: u}})
	}
	if !u.approval.remind.IsZero() {
		s.do(StopTimer{Timer{kind: reminderTimer, unit: u}})
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
	if t.GetApprovalReminder() != nil {
		a.remind = t.GetApprovalReminder().AsTime()
	}
	u.approval = a
	s.approvals++
	s.limitApproval(u, now)
}

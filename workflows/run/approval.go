package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/phrase"
	"switchyard/workflows/status"
)

// askApproval makes a task wait for approval. Its message may have to be rendered first.
func (r *run) askApproval(u *unit) {
	if definition.HasTemplates(r.core.Definition(u.lead)) {
		r.ask(question{task: u.lead, kind: asksTemplate, claim: u.claim})
		return
	}
	r.waitForPerson(u, r.core.Definition(u.lead).GetSpec())
}

// approval is the state of a task that waits for approval.
type approval struct {
	spec    *v1.ApprovalSpec
	message string
	given   []*v1.ApprovalRecord // approvals so far
	until   time.Time            // zero if there is no time limit
	cancel  workflow.CancelFunc  // stops the timer; nil if there is no time limit
}

// needed returns how many people must approve.
func (a *approval) needed() int { return max(1, int(a.spec.GetApprovals())) }

// progress returns how many people have approved, or "" if one approval is enough.
func (a *approval) progress() string {
	if a.needed() == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d have approved)", len(a.given), a.needed())
}

// text returns what the task shows while it waits.
func (a *approval) text() string { return strings.TrimSpace(a.message + a.progress()) }

// waitForPerson marks a task as waiting for approval and starts its time limit.
func (r *run) waitForPerson(u *unit, spec *structpb.Struct) {
	a := &approval{spec: definition.Approval(r.core.Definition(u.lead)), message: spec.GetFields()["message"].GetStringValue()}
	if limit := definition.ApprovalTimeout(a.spec); limit > 0 {
		a.until = workflow.Now(r.ctx).Add(limit)
	}
	r.approvals[u.lead] = a
	r.status.SetPlace(u.lead, a.text(), -1)
	r.log.Add(workflow.Now(r.ctx), v1.EventPaused, u.lead, "", 0, u.claim, phrase.Because(v1.ReasonApproval, a.message),
		eventlog.KeyReason.Of(v1.ReasonApproval), eventlog.KeyMessage.Of(a.message))
	r.events = append(r.events, dag.Placed{Task: u.lead, Claim: u.claim})
	r.armApproval(u.lead, a)
}

// armApproval starts the timer of an approval, if it has a time limit.
func (r *run) armApproval(i int, a *approval) {
	if a.until.IsZero() {
		return
	}
	ctx, cancel := workflow.WithCancel(r.ctx)
	a.cancel = cancel
	r.charge(commandCharge)
	left := max(a.until.Sub(workflow.Now(r.ctx)), time.Millisecond)
	timer := workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "approval of " + r.core.Name(i)})
	r.pending.Watch(timer, func(f workflow.Future) {
		if f.Get(r.ctx, nil) == nil && r.approvals[i] == a {
			r.approvalTimedOut(i, a)
		}
	})
}

// approvalTimedOut ends a task whose approval was not decided in time.
func (r *run) approvalTimedOut(i int, a *approval) {
	c := &v1.TaskCommand{Reason: "no decision within " + a.spec.GetTimeout()}
	if a.spec.GetOnTimeout() == v1.OnTimeoutApprove {
		r.logTask(i, v1.EventApproved, c)
		r.judged(i, c, dag.Ended{State: v1.TaskCompleted})
		return
	}
	r.reject(i, c)
}

// restoreApproval restores a task that waited for approval in the previous execution.
func (r *run) restoreApproval(i int, t *v1.TaskState) {
	a := &approval{spec: definition.Approval(r.core.Definition(i)), given: t.GetApprovals()}
	a.message = strings.TrimSpace(strings.TrimSuffix(" "+t.GetTask().GetError(), a.progress()))
	if t.GetApprovalUntil() != nil {
		a.until = t.GetApprovalUntil().AsTime()
	}
	r.approvals[i] = a
	r.armApproval(i, a)
}

// saveApprovals adds the approvals given so far to the state for the next execution.
func (r *run) saveApprovals(c *v1.RunState) {
	//workflowcheck:ignore (into a map again)
	for i, a := range r.approvals {
		t := c.Tasks[r.core.Name(i)]
		if t == nil {
			continue
		}
		t.Approvals = a.given
		if !a.until.IsZero() {
			t.ApprovalUntil = timestamppb.New(a.until)
		}
	}
}

// mayReject returns why a command cannot reject task i, or nil if it can.
func (r *run) mayReject(i int, c *v1.TaskCommand) error {
	name, def := r.core.Name(i), r.core.Definition(i)
	a := r.approvals[i]
	switch {
	case def.GetType() != v1.TypeApproval:
		return fmt.Errorf("task %s is of type %s; only one of type approval can be approved or rejected", name, def.GetType())
	case a == nil && v1.IsTaskTerminal(r.core.Task(i).State):
		return fmt.Errorf("task %s is %s%s", name, r.status.ShownState(i), r.decidedBefore(i))
	case a == nil:
		return fmt.Errorf("task %s is %s; it does not wait for approval", name, r.status.ShownState(i))
	}
	// An unsigned decision carries no role.
	if d := c.GetDecision(); d != nil && len(a.spec.GetRoles()) > 0 && !slices.ContainsFunc(a.spec.GetRoles(), func(role string) bool {
		return v1.ParseRole(d.GetRole()).Includes(v1.ParseRole(role))
	}) {
		return fmt.Errorf("task %s takes decisions of the role %s; %s has the role %s", name, strings.Join(a.spec.GetRoles(), " or "), d.GetBy(), d.GetRole())
	}
	return nil
}

// decidedBefore returns who decided task i and when, to be appended to its state, or "" if that is unknown.
func (r *run) decidedBefore(i int) string {
	result, _ := r.status.Result(i)
	output := result.GetOutput().GetFields()
	text := ""
	if by := output["by"].GetStringValue(); by != "" {
		text = " by " + by
	}
	if at := output["at"].GetStringValue(); at != "" {
		text += " at " + at
	}
	if text != "" {
		text = ": it was decided" + text
	}
	return text
}

// mayApprove returns why a command cannot approve task i, or nil if it can.
func (r *run) mayApprove(i int, c *v1.TaskCommand) error {
	if err := r.mayReject(i, c); err != nil {
		return err
	}
	for _, before := range r.approvals[i].given {
		if before.GetBy() == c.GetBy() {
			return fmt.Errorf("task %s was approved by %s at %s, and another person has to approve it", r.core.Name(i), before.GetBy(), before.GetAt().AsTime().UTC().Format(time.RFC3339))
		}
	}
	return nil
}

func (r *run) approve(i int, c *v1.TaskCommand) {
	a := r.approvals[i]
	r.logTask(i, v1.EventApproved, c)
	a.given = append(a.given, &v1.ApprovalRecord{By: c.GetBy(), Reason: c.GetReason(), At: timestamppb.New(workflow.Now(r.ctx))})
	if len(a.given) < a.needed() {
		r.status.SetPlace(i, a.text(), -1)
		r.status.Touch(i)
		return
	}
	r.judged(i, c, dag.Ended{State: v1.TaskCompleted})
}

func (r *run) reject(i int, c *v1.TaskCommand) {
	r.logTask(i, v1.EventRejected, c)
	r.judged(i, c, dag.Ended{
		State: v1.TaskRejected, Reason: v1.ReasonRejected, ExitCode: -1, NoRetry: true,
		Error: phrase.Because(phrase.By(v1.TaskRejected, c.GetBy()), c.GetReason()),
	})
}

// judged ends a task that waited for approval. The output of the task holds who decided last, when and why, and every approval
// if the task needed several.
func (r *run) judged(i int, c *v1.TaskCommand, ended dag.Ended) {
	output := decisionFields(c.GetBy(), c.GetReason(), workflow.Now(r.ctx))
	if a := r.approvals[i]; a != nil && a.needed() > 1 {
		list := &structpb.ListValue{}
		for _, given := range a.given {
			list.Values = append(list.Values, structpb.NewStructValue(decisionFields(given.GetBy(), given.GetReason(), given.GetAt().AsTime())))
		}
		output.Fields["approvals"] = structpb.NewListValue(list)
	}
	r.endElsewhere(i, &v1.TaskResult{ExitCode: ended.ExitCode, Output: output}, ended)
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

// endElsewhere ends a task that has run on no node.
func (r *run) endElsewhere(i int, result *v1.TaskResult, ended dag.Ended) {
	rec := r.core.Task(i)
	ended.Task, ended.Claim = i, rec.Claim
	res := &v1.ExecuteResponse{Result: result, AssignedAt: r.status.AssignedAt(i)}
	if u := r.units[i]; u != nil {
		r.leave(u)
	}
	if a := r.approvals[i]; a != nil && a.cancel != nil {
		a.cancel()
	}
	delete(r.approvals, i)
	r.ended(dispatchEnd{assignment: assignment{task: i, claim: rec.Claim}, number: rec.Attempt, ended: ended, res: res, outcome: v1.OutcomeDone})
}

// rendered continues with a task that needs no node once the expressions in its spec have been rendered.
func (r *run) rendered(i int, a *v1.ConditionAnswer) {
	u := r.units[i]
	if u == nil {
		return
	}
	switch {
	case a.GetError() != "":
	case r.core.Definition(i).GetType() == v1.TypeRun:
		r.prepareChild(u, a.GetRendered())
		return
	default:
		r.waitForPerson(u, a.GetRendered())
		return
	}
	r.failBeforeStart(i, a)
}

// failBeforeStart fails a task because an expression that it needs to start could not be evaluated.
func (r *run) failBeforeStart(i int, a *v1.ConditionAnswer) {
	reason := v1.ReasonExpression
	if a.GetBroken() {
		reason = v1.ReasonSystem
	}
	r.events = append(r.events, dag.Placed{Task: i, Claim: r.core.Task(i).Claim})
	r.endElsewhere(i, status.NothingRan, dag.Ended{State: v1.TaskFailed, Reason: reason, Error: a.GetError(), ExitCode: -1, NoRetry: true})
}

package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// approvals owns the tasks that wait for a person's approval.
type approvals struct {
	*execution
	evaluator asker
	outbox    approvalOutbox

	waiting map[int]*approval // by task
}

// The approvals use these parts of other components.
type (
	approvalOutbox interface {
		charge(bytes int)
		startTimer(d time.Duration, summary string, do func()) (stop func())
	}
)

// ask makes a task wait for approval. Its message may have to be rendered first.
func (ap *approvals) ask(u *flight.Unit) {
	if definition.HasTemplates(ap.core.Definition(u.Lead)) {
		ap.evaluator.ask(question{task: u.Lead, kind: asksTemplate, claim: u.Claim, answered: func(a *v1.ConditionAnswer) { ap.messageRendered(u.Lead, a) }})
		return
	}
	ap.waitForPerson(u, ap.core.Definition(u.Lead).GetSpec())
}

// approval is the state of a task that waits for approval.
type approval struct {
	spec    *v1.ApprovalSpec
	message string
	given   []*v1.ApprovalRecord // approvals so far
	until   time.Time            // zero if there is no time limit
	// stopTimer stops the timer; nil if there is no time limit.
	stopTimer func()
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
func (ap *approvals) waitForPerson(u *flight.Unit, spec *structpb.Struct) {
	a := &approval{spec: definition.Approval(ap.core.Definition(u.Lead)), message: spec.GetFields()["message"].GetStringValue()}
	if limit := definition.ApprovalTimeout(a.spec); limit > 0 {
		a.until = ap.now().Add(limit)
	}
	ap.waiting[u.Lead] = a
	ap.status.SetPlace(u.Lead, a.text(), -1)
	ap.log.Add(ap.now(), v1.EventPaused, u.Lead, "", 0, u.Claim, phrase.Because(v1.ReasonApproval, a.message),
		eventlog.KeyReason.Of(v1.ReasonApproval), eventlog.KeyMessage.Of(a.message))
	ap.raise(dag.Placed{Task: u.Lead, Claim: u.Claim})
	ap.startTimer(u.Lead, a)
}

// startTimer starts the timer of an approval, if it has a time limit.
func (ap *approvals) startTimer(i int, a *approval) {
	if a.until.IsZero() {
		return
	}
	ap.outbox.charge(commandCharge)
	left := max(a.until.Sub(ap.now()), time.Millisecond)
	a.stopTimer = ap.outbox.startTimer(left, "approval of "+ap.core.Name(i), func() {
		if ap.waiting[i] == a {
			ap.timedOut(i, a)
		}
	})
}

// timedOut ends a task whose approval was not decided in time.
func (ap *approvals) timedOut(i int, a *approval) {
	c := &v1.TaskCommand{Reason: "no decision within " + a.spec.GetTimeout()}
	if a.spec.GetOnTimeout() == v1.OnTimeoutApprove {
		ap.logTask(i, v1.EventApproved, c)
		ap.endDecided(i, c, dag.Ended{State: v1.TaskCompleted})
		return
	}
	ap.reject(i, c)
}

// restoreTask restores a task that waited for approval in the previous execution.
func (ap *approvals) restoreTask(i int, t *v1.TaskState) {
	if ap.core.Task(i).State != v1.TaskAssigned || ap.core.Definition(i).GetType() != v1.TypeApproval {
		return
	}
	a := &approval{spec: definition.Approval(ap.core.Definition(i)), given: t.GetApprovals()}
	a.message = strings.TrimSpace(strings.TrimSuffix(" "+t.GetTask().GetError(), a.progress()))
	if t.GetApprovalUntil() != nil {
		a.until = t.GetApprovalUntil().AsTime()
	}
	ap.waiting[i] = a
	ap.startTimer(i, a)
	ap.flight.Track(i)
}

// saveTasks adds the approvals given so far to the state for the next execution.
func (ap *approvals) saveTasks(c *v1.RunState) {
	//workflowcheck:ignore (into a map again)
	for i, a := range ap.waiting {
		t := c.Tasks[ap.core.Name(i)]
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
func (ap *approvals) mayReject(i int, c *v1.TaskCommand) error {
	name, def := ap.core.Name(i), ap.core.Definition(i)
	a := ap.waiting[i]
	switch {
	case def.GetType() != v1.TypeApproval:
		return fmt.Errorf("task %s is of type %s; only one of type approval can be approved or rejected", name, def.GetType())
	case a == nil && v1.IsTaskTerminal(ap.core.Task(i).State):
		return fmt.Errorf("task %s is %s%s", name, ap.status.ShownState(i), ap.decidedBefore(i))
	case a == nil:
		return fmt.Errorf("task %s is %s; it is not waiting for approval", name, ap.status.ShownState(i))
	}
	// An unsigned decision carries no role.
	if d := c.GetDecision(); d != nil && len(a.spec.GetRoles()) > 0 && !slices.ContainsFunc(a.spec.GetRoles(), func(role string) bool {
		return v1.ParseRole(d.GetRole()).Includes(v1.ParseRole(role))
	}) {
		return refuse(names.NotAllowedError, fmt.Errorf("task %s requires a decision by the role %s; %s has the role %s", name, strings.Join(a.spec.GetRoles(), " or "), d.GetBy(), d.GetRole()))
	}
	return nil
}

// decidedBefore returns who decided task i and when, to be appended to its state, or "" if that is unknown.
func (ap *approvals) decidedBefore(i int) string {
	output := ap.records.Of(i).Result().GetOutput().GetFields()
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
func (ap *approvals) mayApprove(i int, c *v1.TaskCommand) error {
	if err := ap.mayReject(i, c); err != nil {
		return err
	}
	for _, before := range ap.waiting[i].given {
		if before.GetBy() == c.GetBy() {
			return fmt.Errorf("task %s was already approved by %s at %s; another person must approve it", ap.core.Name(i), before.GetBy(), before.GetAt().AsTime().UTC().Format(time.RFC3339))
		}
	}
	return nil
}

func (ap *approvals) approve(i int, c *v1.TaskCommand) {
	a := ap.waiting[i]
	ap.logTask(i, v1.EventApproved, c)
	a.given = append(a.given, &v1.ApprovalRecord{By: c.GetBy(), Reason: c.GetReason(), At: timestamppb.New(ap.now())})
	if len(a.given) < a.needed() {
		ap.status.SetPlace(i, a.text(), -1)
		ap.status.Touch(i)
		return
	}
	ap.endDecided(i, c, dag.Ended{State: v1.TaskCompleted})
}

func (ap *approvals) reject(i int, c *v1.TaskCommand) {
	ap.logTask(i, v1.EventRejected, c)
	ap.endDecided(i, c, dag.Ended{
		State: v1.TaskRejected, Reason: v1.ReasonRejected, ExitCode: -1, NoRetry: true,
		Error: phrase.Because(phrase.By(v1.TaskRejected, c.GetBy()), c.GetReason()),
	})
}

// endDecided ends a task that waited for approval. The output of the task holds who decided last, when and why, and every
// approval if the task needed several.
func (ap *approvals) endDecided(i int, c *v1.TaskCommand, ended dag.Ended) {
	output := decisionFields(c.GetBy(), c.GetReason(), ap.now())
	if a := ap.waiting[i]; a != nil && a.needed() > 1 {
		list := &structpb.ListValue{}
		for _, given := range a.given {
			list.Values = append(list.Values, structpb.NewStructValue(decisionFields(given.GetBy(), given.GetReason(), given.GetAt().AsTime())))
		}
		output.Fields["approvals"] = structpb.NewListValue(list)
	}
	ap.end(i, &v1.TaskResult{ExitCode: ended.ExitCode, Output: output}, ended)
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

// messageRendered continues with a task once the expressions in its message have been rendered.
func (ap *approvals) messageRendered(i int, a *v1.ConditionAnswer) {
	switch u := ap.flight.UnitOf(i); {
	case u == nil:
	case a.GetError() != "":
		ap.fly(ap.flight.FailBeforeStart(i, a))
	default:
		ap.waitForPerson(u, a.GetRendered())
	}
}

// end ends a task that waits for approval or has waited for it.
func (ap *approvals) end(i int, result *v1.TaskResult, ended dag.Ended) {
	if a := ap.waiting[i]; a != nil && a.stopTimer != nil {
		a.stopTimer()
	}
	delete(ap.waiting, i)
	ap.fly(ap.flight.EndElsewhere(i, &v1.ExecuteResponse{Result: result}, ended))
}

// stop ends a task that waits for approval. It returns false if the task does not.
func (ap *approvals) stop(i int) bool {
	if ap.waiting[i] == nil {
		return false
	}
	ap.end(i, flight.NothingRan, dag.Ended{State: v1.TaskCancelled, ExitCode: -1})
	return true
}

// waits reports whether a task waits for approval.
func (ap *approvals) waits(i int) bool { return ap.waiting[i] != nil }

// count returns the number of tasks that wait for approval.
func (ap *approvals) count() int { return len(ap.waiting) }

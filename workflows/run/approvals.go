package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// approvals lets people decide about tasks that wait for approval.
type approvals struct{ *execution }

// mayReject returns why a command cannot reject task i, or nil if it can.
func (ap *approvals) mayReject(i int, c *historyv1.TaskCommand) error {
	name, def := ap.core.Name(i), ap.core.Definition(i)
	a := ap.flight.ApprovalOf(i)
	switch {
	case def.GetType() != v1.TypeApproval:
		return fmt.Errorf("task %s is of type %s; only one of type approval can be approved or rejected", name, def.GetType())
	case a == nil && v1.IsTaskTerminal(ap.core.Task(i).State):
		return fmt.Errorf("task %s is %s%s", name, ap.status.ShownState(i), ap.decidedBefore(i))
	case a == nil:
		return fmt.Errorf("task %s is %s; it is not waiting for approval", name, ap.status.ShownState(i))
	}
	// An unsigned decision carries no role.
	if d := c.GetDecision(); d != nil && len(a.Spec.GetRoles()) > 0 && !slices.ContainsFunc(a.Spec.GetRoles(), func(role string) bool {
		return v1.ParseRole(d.GetRole()).Includes(v1.ParseRole(role))
	}) {
		return refuse(names.NotAllowedError, fmt.Errorf("task %s requires a decision by the role %s; %s has the role %s", name, strings.Join(a.Spec.GetRoles(), " or "), d.GetBy(), d.GetRole()))
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
func (ap *approvals) mayApprove(i int, c *historyv1.TaskCommand) error {
	if err := ap.mayReject(i, c); err != nil {
		return err
	}
	for _, before := range ap.flight.ApprovalOf(i).Given {
		if before.GetBy() == c.GetBy() {
			return fmt.Errorf("task %s was already approved by %s at %s; another person must approve it", ap.core.Name(i), before.GetBy(), before.GetAt().AsTime().UTC().Format(time.RFC3339))
		}
	}
	return nil
}

func (ap *approvals) approve(i int, c *historyv1.TaskCommand) {
	ap.fly(ap.flight.Approve(i, c, ap.now()))
}

func (ap *approvals) reject(i int, c *historyv1.TaskCommand) {
	ap.fly(ap.flight.Reject(i, c, ap.now()))
}

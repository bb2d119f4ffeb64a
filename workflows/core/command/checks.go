package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// Refusal is why a command is not carried out.
type Refusal struct {
	Kind string // type of the error that clients get, one of names.TaskStateError, RunEndedError, NotAllowedError and UnknownTaskError
	err  error
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap returns the error that the reason wraps.
func (r *Refusal) Unwrap() error { return r.err }

// refuse returns a refusal for the state of a task or of the run.
func refuse(format string, args ...any) *Refusal {
	return refuseAs(names.TaskStateError, format, args...)
}

func refuseAs(kind, format string, args ...any) *Refusal {
	return &Refusal{kind, fmt.Errorf(format, args...)}
}

// ErrJustEnded is the reason for a command that reaches a run after its end.
var ErrJustEnded = errors.New("the run has just ended; try again")

// Checks holds the facts of a run that decide whether a command can be carried out. Its methods return why it cannot, or nil.
type Checks struct {
	Core    *dag.State
	Records *flight.Records
	Flight  *flight.State
	FanOuts *fanout.State
	// ShownState returns the state of a task as people see it.
	ShownState func(i int) string

	IsCancelled bool            // a person has cancelled the run
	Approval    *v1.RunApproval // of the run; nil if it has needed none
	SubmittedBy string          // who submitted the run, or "" if unknown
}

// Target returns the task or instance that a command is for, or why the command makes no sense. may checks the command for that
// task.
func (k Checks) Target(c *historyv1.TaskCommand, may func(Checks, int, *historyv1.TaskCommand) *Refusal) (int, *Refusal) {
	i, ok := k.Core.Index(c.GetTask())
	if !ok {
		return 0, refuseAs(names.UnknownTaskError, "task %q: %w", c.GetTask(), dag.ErrUnknownTask)
	}
	if err := k.mayChange(); err != nil {
		return 0, err
	}
	return i, may(k, i, c)
}

// mayChange returns why the run cannot be changed, or nil if it can.
func (k Checks) mayChange() *Refusal {
	switch {
	case k.Core.Over():
		return &Refusal{names.RunEndedError, ErrJustEnded}
	case k.IsCancelled:
		return refuse("the run is being cancelled")
	case k.Core.Cancelled():
		return refuse("the run is being ended")
	}
	return nil
}

// MayPause checks a command that stops new starts.
func (k Checks) MayPause(*historyv1.RunCommand) *Refusal {
	if err := k.mayChange(); err != nil || !k.Flight.IsPaused() {
		return err
	}
	return refuse("the run is already paused")
}

// MayResume checks a command that lets tasks start again.
func (k Checks) MayResume(*historyv1.RunCommand) *Refusal {
	if err := k.mayChange(); err != nil || k.Flight.IsPaused() {
		return err
	}
	return refuse("the run is not paused")
}

// MayDecideRun checks a decision about the run itself.
func (k Checks) MayDecideRun(c *historyv1.RunCommand) *Refusal {
	switch k.Approval.GetState() {
	case v1.ApprovalPending:
	case "":
		return refuse("the run is not waiting for approval")
	default:
		return refuse("the run was %s by %s at %s", k.Approval.GetState(), k.Approval.GetBy(), k.Approval.GetAt().AsTime().UTC().Format(time.RFC3339))
	}
	if err := k.mayChange(); err != nil {
		return err
	}
	if by := c.GetDecision().GetBy(); by != "" && by == k.SubmittedBy {
		return refuseAs(names.NotAllowedError, "%s submitted the run; another person must approve or reject it", by)
	}
	return nil
}

// MayHold checks a command that keeps a task from starting.
func (k Checks) MayHold(i int, _ *historyv1.TaskCommand) *Refusal {
	switch {
	case k.Records.Of(i).Held:
		return refuse("task %s is already held", k.Core.Name(i))
	case !v1.IsTaskWaiting(k.Core.Task(i).State):
		return refuse("task %s is %s; only a task that has not started can be held: to stop it, cancel it", k.Core.Name(i), k.ShownState(i))
	}
	return nil
}

// MayRelease checks a command that lets a held task start.
func (k Checks) MayRelease(i int, _ *historyv1.TaskCommand) *Refusal {
	if !k.Records.Of(i).Held {
		return refuse("task %s is not held", k.Core.Name(i))
	}
	return nil
}

// MayCancel checks a command that cancels a task.
func (k Checks) MayCancel(i int, _ *historyv1.TaskCommand) *Refusal {
	if rec := k.Core.Task(i); v1.IsTaskTerminal(rec.State) {
		return refuse("task %s is %s; it has ended", k.Core.Name(i), rec.State)
	}
	return nil
}

// MayKill checks a command that ends a task for good.
func (k Checks) MayKill(i int, c *historyv1.TaskCommand) *Refusal {
	if rec := k.Core.Task(i); rec.PendingEnd {
		return refuse("task %s is already being %s", k.Core.Name(i), endingWord(rec.Failure))
	}
	return k.MayCancel(i, c)
}

// endingWord returns the verb form for how a task is being ended.
func endingWord(f dag.Failure) string {
	if f.State == v1.TaskFailed { // its deadline has passed
		return "ended"
	}
	return f.State
}

// MayRetry checks the command that requeues a dead letter.
func (k Checks) MayRetry(name string) *Refusal {
	task, number, isPartitioned := k.FanOuts.Instance(name)
	i, ok := k.Core.Index(name)
	switch {
	case !ok && !isPartitioned:
		return refuseAs(names.UnknownTaskError, "task %q: %w", name, dag.ErrUnknownTask)
	case k.Core.Over():
		return &Refusal{names.RunEndedError, ErrJustEnded}
	case k.IsCancelled:
		return &Refusal{names.TaskStateError, dag.ErrCancelled}
	}
	var err error
	if isPartitioned {
		err = k.FanOuts.MayRequeue(task, number)
	} else {
		err = k.Core.MayRetry(i)
	}
	switch {
	case errors.Is(err, fanout.ErrOpenPartition):
		return &Refusal{names.UnknownTaskError, err}
	case err != nil:
		return &Refusal{names.TaskStateError, err}
	}
	return nil
}

// MayReject checks a person's rejection of a task.
func (k Checks) MayReject(i int, c *historyv1.TaskCommand) *Refusal {
	name, def, a := k.Core.Name(i), k.Core.Definition(i), k.Flight.ApprovalOf(i)
	switch {
	case def.GetType() != v1.TypeApproval:
		return refuse("task %s is of type %s; only one of type approval can be approved or rejected", name, def.GetType())
	case a == nil && v1.IsTaskTerminal(k.Core.Task(i).State):
		return refuse("task %s is %s%s", name, k.ShownState(i), k.decidedBefore(i))
	case a == nil:
		return refuse("task %s is %s; it is not waiting for approval", name, k.ShownState(i))
	}
	// An unsigned decision carries no role.
	if d := c.GetDecision(); d != nil && len(a.Spec.GetRoles()) > 0 && !slices.ContainsFunc(a.Spec.GetRoles(), func(role string) bool {
		return v1.ParseRole(d.GetRole()).Includes(v1.ParseRole(role))
	}) {
		return refuseAs(names.NotAllowedError, "task %s requires a decision by the role %s; %s has the role %s", name, strings.Join(a.Spec.GetRoles(), " or "), d.GetBy(), d.GetRole())
	}
	return nil
}

// decidedBefore returns who decided task i and when, to be appended to its state, or "" if that is unknown.
func (k Checks) decidedBefore(i int) string {
	output := k.Records.Of(i).Result().GetOutput().GetFields()
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

// MayApprove checks a person's approval of a task.
func (k Checks) MayApprove(i int, c *historyv1.TaskCommand) *Refusal {
	if err := k.MayReject(i, c); err != nil {
		return err
	}
	for _, before := range k.Flight.ApprovalOf(i).Given {
		if before.GetBy() == c.GetBy() {
			return refuse("task %s was already approved by %s at %s; another person must approve it", k.Core.Name(i), before.GetBy(), before.GetAt().AsTime().UTC().Format(time.RFC3339))
		}
	}
	return nil
}

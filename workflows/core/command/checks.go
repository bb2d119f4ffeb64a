package command

import (
	"errors"
	"fmt"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
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

// mayChange returns why the run cannot be changed, or nil if it can.
func (s *State) mayChange() *Refusal {
	switch {
	case s.Core.Over():
		return &Refusal{names.RunEndedError, ErrJustEnded}
	case s.IsCancelled && !s.Core.InFinally():
		return refuse("the run is being cancelled")
	case s.Core.IsEnding():
		return refuse("the run is being ended")
	}
	return nil
}

// mayPause checks a command that stops new starts.
func (s *State) mayPause(int, *historyv1.TaskCommand) *Refusal {
	if err := s.mayChange(); err != nil || !s.Flight.IsPaused() {
		return err
	}
	return refuse("the run is already paused")
}

// mayResume checks a command that lets tasks start again.
func (s *State) mayResume(int, *historyv1.TaskCommand) *Refusal {
	if err := s.mayChange(); err != nil || s.Flight.IsPaused() {
		return err
	}
	return refuse("the run is not paused")
}

// mayDecideRun checks a decision about the run itself.
func (s *State) mayDecideRun(_ int, c *historyv1.TaskCommand) *Refusal {
	switch s.Approval.GetState() {
	case v1.ApprovalPending:
	case "":
		return refuse("the run is not waiting for approval")
	default:
		return refuse("the run was %s by %s at %s", s.Approval.GetState(), s.Approval.GetBy(), s.Approval.GetAt().AsTime().UTC().Format(time.RFC3339))
	}
	if err := s.mayChange(); err != nil {
		return err
	}
	if by := c.GetDecision().GetBy(); by != "" && by == s.SubmittedBy {
		return refuseAs(names.NotAllowedError, "%s submitted the run; another person must approve or reject it", by)
	}
	return nil
}

// mayHold checks a command that keeps a task from starting.
func (s *State) mayHold(i int, _ *historyv1.TaskCommand) *Refusal {
	switch {
	case s.Records.Of(i).Held:
		return refuse("task %s is already held", s.Core.Name(i))
	case !v1.IsTaskWaiting(s.Core.Task(i).State):
		return refuse("task %s is %s; only a task that has not started can be held: to stop it, cancel it", s.Core.Name(i), s.Flight.Shown(i))
	}
	return nil
}

// mayRelease checks a command that lets a held task start.
func (s *State) mayRelease(i int, _ *historyv1.TaskCommand) *Refusal {
	if !s.Records.Of(i).Held {
		return refuse("task %s is not held", s.Core.Name(i))
	}
	return nil
}

// mayCancel checks a command that cancels a task.
func (s *State) mayCancel(i int, _ *historyv1.TaskCommand) *Refusal {
	if rec := s.Core.Task(i); v1.IsTaskTerminal(rec.State) {
		return refuse("task %s is %s; it has ended", s.Core.Name(i), rec.State)
	}
	return nil
}

// mayKill checks a command that ends a task for good.
func (s *State) mayKill(i int, c *historyv1.TaskCommand) *Refusal {
	if rec := s.Core.Task(i); rec.PendingEnd {
		return refuse("task %s is already being %s", s.Core.Name(i), endingWord(rec.Failure))
	}
	return s.mayCancel(i, c)
}

// endingWord returns the verb form for how a task is being ended.
func endingWord(f dag.Failure) string {
	if f.State == v1.TaskFailed { // its deadline has passed
		return "ended"
	}
	return f.State
}

// mayRetry checks the command that requeues a dead letter.
func (s *State) mayRetry(_ int, c *historyv1.TaskCommand) *Refusal {
	name := c.GetTask()
	task, number, isPartitioned := s.FanOuts.Instance(name)
	i, ok := s.Core.Index(name)
	switch {
	case !ok && !isPartitioned:
		return refuseAs(names.UnknownTaskError, "task %q: %w", name, dag.ErrUnknownTask)
	case s.Core.Over():
		return &Refusal{names.RunEndedError, ErrJustEnded}
	case s.IsCancelled && !s.Core.InFinally():
		return &Refusal{names.TaskStateError, dag.ErrCancelled}
	}
	var err error
	if isPartitioned {
		err = s.FanOuts.MayRequeue(task, number)
	} else {
		err = s.Core.MayRetry(i)
	}
	switch {
	case errors.Is(err, fanout.ErrOpenPartition):
		return &Refusal{names.UnknownTaskError, err}
	case err != nil:
		return &Refusal{names.TaskStateError, err}
	}
	return nil
}

// mayReject checks a person's rejection of a task.
func (s *State) mayReject(i int, c *historyv1.TaskCommand) *Refusal {
	name, def, a := s.Core.Name(i), s.Core.Definition(i), s.Flight.ApprovalOf(i)
	switch {
	case def.GetType() != v1.TypeApproval:
		return refuse("task %s is of type %s; only one of type approval can be approved or rejected", name, def.GetType())
	case a == nil && v1.IsTaskTerminal(s.Core.Task(i).State):
		return refuse("task %s is %s%s", name, s.Flight.Shown(i), s.decidedBefore(i))
	case a == nil:
		return refuse("task %s is %s; it is not waiting for approval", name, s.Flight.Shown(i))
	}
	if d := c.GetDecision(); d != nil { // an unsigned decision carries no role and no proven name
		if why := a.WhyNotApprover(name, d, d.GetIsSubmitter() || d.GetBy() == s.SubmittedBy); why != "" {
			return refuseAs(names.NotAllowedError, "%s", why)
		}
	}
	return nil
}

// decidedBefore returns who decided task i and when, to be appended to its state, or "" if that is unknown.
func (s *State) decidedBefore(i int) string {
	output := s.Records.Of(i).Result().GetOutput().GetFields()
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

// mayApprove checks a person's approval of a task.
func (s *State) mayApprove(i int, c *historyv1.TaskCommand) *Refusal {
	if err := s.mayReject(i, c); err != nil {
		return err
	}
	for _, before := range s.Flight.ApprovalOf(i).Given {
		if before.GetBy() == c.GetBy() {
			return refuse("task %s was already approved by %s at %s; another person must approve it", s.Core.Name(i), before.GetBy(), before.GetAt().AsTime().UTC().Format(time.RFC3339))
		}
	}
	if _, err := s.Flight.ApprovalOf(i).Fill(c.GetInput()); err != nil {
		return refuseAs(names.InvalidInputError, "task %s: %w", s.Core.Name(i), err)
	}
	return nil
}

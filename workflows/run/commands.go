package run

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// command is a change to the run that a person asks for. The main loop executes it between two rounds and then answers the
// caller.
type command struct {
	do   func() error
	done bool
	err  error
}

// perform queues a command for the main loop and returns its result. It refuses a command that comes too late.
func (r *run) perform(ctx workflow.Context, do func() error) error {
	if r.refusal != nil {
		return r.refusal
	}
	c := &command{do: do}
	r.commands = append(r.commands, c)
	if err := workflow.Await(ctx, func() bool { return c.done || r.refusal != nil }); err != nil {
		return err
	}
	if !c.done {
		return r.refusal
	}
	return c.err
}

// refuseCommands refuses all queued and later commands, because the main loop has ended. It returns when every update has its
// answer.
func (r *run) refuseCommands(kind string, why error) {
	r.refusal = refuse(kind, why)
	r.awaitHandlers()
}

// obey executes the queued commands.
func (r *run) obey() {
	for len(r.commands) > 0 {
		c := r.commands[0]
		r.commands = r.commands[1:]
		c.err = c.do()
		c.done = true
	}
}

var (
	errNotBegun   = errors.New("the run has not begun; try again")
	errJustEnded  = errors.New("the run has just ended; try again")
	errContinuing = errors.New("the run is continuing as new; try again")
)

// target returns the task or instance that a command is for, or an error if the command makes no sense.
func (r *run) target(name string, may func(int) error) (int, error) {
	i, ok := r.core.Index(name)
	if !ok {
		return 0, refuse(names.UnknownTaskError, fmt.Errorf("task %q: %w", name, dag.ErrUnknownTask))
	}
	if err := r.mayChange(); err != nil {
		return 0, err
	}
	if err := may(i); err != nil {
		return 0, refuse(names.TaskStateError, err)
	}
	return i, nil
}

// mayChange returns why the run cannot be changed, or nil if it can.
func (r *run) mayChange() error {
	switch {
	case r.core.Over():
		return refuse(names.RunEndedError, errJustEnded)
	case r.cancelled:
		return refuse(names.TaskStateError, errors.New("the run is being cancelled"))
	case r.core.Cancelled():
		return refuse(names.TaskStateError, errors.New("the run is being ended"))
	}
	return nil
}

func (r *run) mayPause(*v1.RunCommand) error {
	if err := r.mayChange(); err != nil {
		return err
	}
	if r.admission.Paused() {
		return refuse(names.TaskStateError, errors.New("the run is paused already"))
	}
	return nil
}

// pause stops new starts. A task that has a node but has not started gives the node back.
func (r *run) pause(c *v1.RunCommand) {
	r.admission.Pause()
	if c.GetBy() != "" || c.GetReason() != "" {
		r.status.PausedBy = phrase.Because(phrase.By(v1.RunPaused, c.GetBy()), c.GetReason())
	}
	r.orderAllPartitions()
	r.logRun(v1.EventPaused, c.GetBy(), c.GetReason())
	const text = "the run is paused"
	for i := range r.core.Len() {
		if u := r.units[i]; u != nil && u.lead == i {
			r.setAside(u, v1.ReasonPaused, text)
		}
	}
}

func (r *run) mayResume(*v1.RunCommand) error {
	if err := r.mayChange(); err != nil {
		return err
	}
	if !r.admission.Paused() {
		return refuse(names.TaskStateError, errors.New("the run is not paused"))
	}
	return nil
}

func (r *run) resume(c *v1.RunCommand) {
	r.admission.Resume()
	r.status.PausedBy = ""
	r.orderAllPartitions()
	r.logRun(v1.EventResumed, c.GetBy(), c.GetReason())
}

func (r *run) mayHold(i int) error {
	rec := r.core.Task(i)
	switch {
	case r.status.IsHeld(i):
		return fmt.Errorf("task %s is held already", r.core.Name(i))
	case !v1.IsTaskWaiting(rec.State):
		return fmt.Errorf("task %s is %s; only a task that has not started can be held: to stop it, cancel it", r.core.Name(i), r.status.ShownState(i))
	}
	return nil
}

// hold keeps a task from starting. A task that waits for a node leaves the placement queue.
func (r *run) hold(i int, c *v1.TaskCommand) {
	r.admission.Hold(i)
	r.status.SetHeld(i, true, phrase.Because(phrase.By("", c.GetBy()), c.GetReason()))
	r.logTask(i, v1.EventHeld, c)
	if u := r.units[i]; u != nil {
		r.setAside(u, v1.ReasonHeld, "a person holds it back")
	}
}

func (r *run) mayUnhold(i int) error {
	if !r.status.IsHeld(i) {
		return fmt.Errorf("task %s is not held", r.core.Name(i))
	}
	return nil
}

func (r *run) unhold(i int, c *v1.TaskCommand) {
	r.admission.Release(i)
	r.status.SetHeld(i, false, "")
	r.logTask(i, v1.EventReleased, c)
	if r.unexpanded[i] {
		delete(r.unexpanded, i)
		if r.core.Task(i).State == v1.TaskPending { // it may have ended meanwhile
			r.expand(i)
		}
	}
}

func (r *run) mayCancelTask(i int) error {
	if rec := r.core.Task(i); v1.IsTaskTerminal(rec.State) {
		return fmt.Errorf("task %s is %s; it has ended", r.core.Name(i), rec.State)
	}
	return nil
}

func (r *run) cancelTask(i int, c *v1.TaskCommand) {
	r.status.Extras(i).SteeredBy = c.GetBy()
	r.events = append(r.events, dag.CancelTask{Task: i, Reason: phrase.Because(phrase.By("cancelled", c.GetBy()), c.GetReason())})
}

// setAside withdraws the unstarted part of a unit, which then queues for admission again. Running tasks and tasks that wait for
// approval continue.
func (r *run) setAside(u *unit, reason, text string) {
	for k, a := range r.assignments {
		if a.unit != u {
			continue
		}
		r.assignments = append(r.assignments[:k:k], r.assignments[k+1:]...)
		r.giveBack(a, reason, text)
		return
	}
	if r.waitsForNode(u.lead, u.claim) || r.waitsForLock(u) {
		r.suspend(u, reason, text)
	}
}

// logRun logs a command for the run. logTask logs a command for a task.
func (r *run) logRun(event, who, why string) {
	r.log.Add(workflow.Now(r.ctx), event, eventlog.WholeRun, "", 0, 0, phrase.Because(phrase.By("", who), why), eventlog.CommandFacts(who, why)...)
}

func (r *run) logTask(i int, event string, c *v1.TaskCommand) {
	rec := r.core.Task(i)
	r.log.Add(workflow.Now(r.ctx), event, i, "", rec.Attempt, rec.Claim, phrase.Because(phrase.By("", c.GetBy()), c.GetReason()),
		eventlog.CommandFacts(c.GetBy(), c.GetReason())...)
}

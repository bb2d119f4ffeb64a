package run

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// controls lets people pause the run, hold, cancel or kill its tasks, and requeue dead letters.
type controls struct {
	*execution
	commands controlCommands
	expander controlExpander
}

// The controls use these parts of other components.
type (
	controlCommands interface {
		awaitBegin(ctx workflow.Context) error
		refused() error
		mayChange() error
		isCancelled() bool
		cancelRequested() bool
	}
	controlExpander interface {
		release(i int)
	}
)

func (ct *controls) mayPause(*historyv1.RunCommand) error {
	if err := ct.commands.mayChange(); err != nil {
		return err
	}
	if ct.flight.IsPaused() {
		return refuse(names.TaskStateError, errors.New("the run is already paused"))
	}
	return nil
}

// pause stops new starts. A task that has a node but has not started gives the node back.
func (ct *controls) pause(c *historyv1.RunCommand) {
	ct.flight.Pause()
	if c.GetBy() != "" || c.GetReason() != "" {
		ct.status.SetPausedBy(phrase.Because(phrase.By(v1.RunPaused, c.GetBy()), c.GetReason()))
	}
	ct.spread(ct.fanOuts.OrderAll())
	ct.logRun(v1.EventPaused, c.GetBy(), c.GetReason())
	ct.fly(ct.flight.SetAllAside(v1.ReasonPaused, "the run is paused"))
}

func (ct *controls) mayResume(*historyv1.RunCommand) error {
	if err := ct.commands.mayChange(); err != nil {
		return err
	}
	if !ct.flight.IsPaused() {
		return refuse(names.TaskStateError, errors.New("the run is not paused"))
	}
	return nil
}

func (ct *controls) resume(c *historyv1.RunCommand) {
	ct.flight.Resume()
	ct.status.SetPausedBy("")
	ct.spread(ct.fanOuts.OrderAll())
	ct.logRun(v1.EventResumed, c.GetBy(), c.GetReason())
}

func (ct *controls) mayHold(i int) error {
	rec := ct.core.Task(i)
	switch {
	case ct.records.Of(i).Held:
		return fmt.Errorf("task %s is already held", ct.core.Name(i))
	case !v1.IsTaskWaiting(rec.State):
		return fmt.Errorf("task %s is %s; only a task that has not started can be held: to stop it, cancel it", ct.core.Name(i), ct.status.ShownState(i))
	}
	return nil
}

// hold keeps a task from starting. A task that waits for a node leaves the placement queue.
func (ct *controls) hold(i int, c *historyv1.TaskCommand) {
	ct.fly(ct.flight.Hold(i, phrase.Because(phrase.By("", c.GetBy()), c.GetReason())))
	ct.logTask(i, v1.EventHeld, c)
}

func (ct *controls) mayUnhold(i int) error {
	if !ct.records.Of(i).Held {
		return fmt.Errorf("task %s is not held", ct.core.Name(i))
	}
	return nil
}

func (ct *controls) unhold(i int, c *historyv1.TaskCommand) {
	ct.fly(ct.flight.Unhold(i))
	ct.logTask(i, v1.EventReleased, c)
	ct.expander.release(i)
}

func (ct *controls) mayCancelTask(i int) error {
	if rec := ct.core.Task(i); v1.IsTaskTerminal(rec.State) {
		return fmt.Errorf("task %s is %s; it has ended", ct.core.Name(i), rec.State)
	}
	return nil
}

func (ct *controls) cancelTask(i int, c *historyv1.TaskCommand) {
	ct.status.SetSteeredBy(i, c.GetBy())
	ct.raise(dag.CancelTask{Task: i, Reason: phrase.Because(phrase.By("cancelled", c.GetBy()), c.GetReason())})
}

// mayKill returns why task i cannot be killed, or nil if it can.
func (ct *controls) mayKill(i int) error {
	switch rec := ct.core.Task(i); {
	case v1.IsTaskTerminal(rec.State):
		return fmt.Errorf("task %s is %s; it has ended", ct.core.Name(i), rec.State)
	case rec.PendingEnd:
		return fmt.Errorf("task %s is already being %s", ct.core.Name(i), endingWord(rec.Failure))
	}
	return nil
}

// kill ends a task for good. The core, and the next execution of the run, receive the kill before anything is stopped. So
// whenever the attempt ends, only a completion counts; any other end is a kill.
func (ct *controls) kill(i int, c *historyv1.TaskCommand) {
	ct.status.SetSteeredBy(i, c.GetBy())
	ct.raise(dag.Kill{Task: i, Reason: phrase.Because(phrase.By("killed", c.GetBy()), c.GetReason())})
}

// retry requeues a dead letter and resets its attempts to 0.
func (ct *controls) retry(ctx workflow.Context, req *historyv1.RetryTaskRequest) error {
	if err := ct.commands.awaitBegin(ctx); err != nil {
		return err
	}
	if err := ct.commands.refused(); err != nil {
		return err
	}
	if err := ct.mayRetry(req); err != nil {
		return err
	}
	if ct.commands.cancelRequested() { // a validator may not check this
		return refuse(names.TaskStateError, dag.ErrCancelled)
	}
	if task, number, ok := ct.fanOuts.Instance(req.GetTask()); ok {
		ct.spread(ct.fanOuts.Requeue(task, number))
		return nil
	}
	i, _ := ct.core.Index(req.GetTask()) // mayRetry has checked the name
	ct.status.SetSteeredBy(i, req.GetBy())
	ct.raise(dag.Retry{Task: i})
	return nil
}

// mayRetry returns why a task cannot be requeued, or nil if it can. It also returns nil before the run has begun; retry then
// checks again.
func (ct *controls) mayRetry(req *historyv1.RetryTaskRequest) error {
	if ct.core == nil {
		return nil
	}
	task, number, isPartitioned := ct.fanOuts.Instance(req.GetTask())
	i, ok := ct.core.Index(req.GetTask())
	if !ok && !isPartitioned {
		return refuse(names.UnknownTaskError, fmt.Errorf("task %q: %w", req.GetTask(), dag.ErrUnknownTask))
	}
	if ct.core.Over() {
		return refuse(names.RunEndedError, errJustEnded)
	}
	if ct.commands.isCancelled() {
		return refuse(names.TaskStateError, dag.ErrCancelled)
	}
	var err error
	if isPartitioned {
		err = ct.fanOuts.MayRequeue(task, number)
	} else {
		err = ct.core.MayRetry(i)
	}
	switch {
	case errors.Is(err, fanout.ErrOpenPartition):
		return refuse(names.UnknownTaskError, err)
	case err != nil:
		return refuse(names.TaskStateError, err)
	}
	return nil
}

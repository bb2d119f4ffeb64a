package run

import (
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
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
		checks() command.Checks
		cancelRequested() bool
	}
	controlExpander interface {
		release(i int)
	}
)

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

func (ct *controls) resume(c *historyv1.RunCommand) {
	ct.flight.Resume()
	ct.status.SetPausedBy("")
	ct.spread(ct.fanOuts.OrderAll())
	ct.logRun(v1.EventResumed, c.GetBy(), c.GetReason())
}

// hold keeps a task from starting. A task that waits for a node leaves the placement queue.
func (ct *controls) hold(i int, c *historyv1.TaskCommand) {
	ct.fly(ct.flight.Hold(i, phrase.Because(phrase.By("", c.GetBy()), c.GetReason())))
	ct.logTask(i, v1.EventHeld, c)
}

func (ct *controls) unhold(i int, c *historyv1.TaskCommand) {
	ct.fly(ct.flight.Unhold(i))
	ct.logTask(i, v1.EventReleased, c)
	ct.expander.release(i)
}

func (ct *controls) cancelTask(i int, c *historyv1.TaskCommand) {
	ct.status.SetSteeredBy(i, c.GetBy())
	ct.raise(dag.CancelTask{Task: i, Reason: phrase.Because(phrase.By("cancelled", c.GetBy()), c.GetReason())})
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
	return refusal(ct.commands.checks().MayRetry(req.GetTask()))
}

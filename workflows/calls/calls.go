package calls

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/pending"
)

// Calls sends the commands of one execution. Only workflow code uses it.
type Calls struct {
	// Home is the key prefix in the store that an outage is probed with.
	Home string
	// IsInterrupted reports whether a blocking call that waits for the store is to give up.
	IsInterrupted func() bool
	// ShowProblem is called when the problem has changed that keeps the run from continuing.
	ShowProblem func(text string)

	ctx     workflow.Context // outlives the cancellation of the run
	most    int              // bytes that one workflow task may send
	pending pending.Set
	budget  budget
	outage  outage
}

// New returns the calls of an execution whose workflow tasks send at most the given number of bytes each.
func New(ctx workflow.Context, most int) *Calls { return &Calls{ctx: ctx, most: most} }

// Charge adds a command to the budget of the workflow task. If the budget is exceeded, Charge first lets the workflow task send
// its commands; other coroutines may run in between.
func (c *Calls) Charge(bytes int) {
	b := &c.budget
	if b.charged(workflow.GetInfo(c.ctx).GetCurrentHistoryLength(), bytes) > c.most && b.spent > bytes {
		_ = workflow.Sleep(c.ctx, time.Millisecond) // ctx is never cancelled
		b.charged(workflow.GetInfo(c.ctx).GetCurrentHistoryLength(), bytes)
	}
}

// Watch calls onReady in the round after a future has become ready.
func (c *Calls) Watch(future workflow.Future, onReady func(workflow.Future)) {
	c.pending.Watch(future, onReady)
}

// HasReady reports whether any watched future is ready.
func (c *Calls) HasReady() bool { return c.pending.HasReady() }

// Settle calls back for each watched future that is ready.
func (c *Calls) Settle() { c.pending.Settle() }

// Activity schedules an activity. written is the number of bytes in its request that users have written.
func (c *Calls) Activity(options workflow.ActivityOptions, name string, req any, written int) workflow.Future {
	return c.ActivityWith(c.ctx, options, name, req, written)
}

// ActivityWith schedules an activity under a context that can cancel it.
func (c *Calls) ActivityWith(ctx workflow.Context, options workflow.ActivityOptions, name string, req any, written int) workflow.Future {
	c.Charge(activityCharge + written)
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, req)
}

// Signal signals another workflow. written is the number of bytes in the argument that users have written.
func (c *Calls) Signal(id, name string, arg any, written int) workflow.Future {
	c.Charge(CommandCharge + written)
	return workflow.SignalExternalWorkflow(c.ctx, id, "", name, arg)
}

// After calls a function after a delay.
func (c *Calls) After(d time.Duration, summary string, do func()) {
	c.Charge(CommandCharge)
	timer := workflow.NewTimerWithOptions(c.ctx, d, workflow.TimerOptions{Summary: summary})
	c.Watch(timer, func(workflow.Future) { do() })
}

// Timer calls a function after a delay unless the returned function stops the timer before. The caller has charged it.
func (c *Calls) Timer(d time.Duration, summary string, do func()) (stop func()) {
	ctx, cancel := workflow.WithCancel(c.ctx)
	timer := workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: summary})
	c.Watch(timer, func(f workflow.Future) {
		if f.Get(c.ctx, nil) == nil {
			do()
		}
	})
	return cancel
}

package run

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/pending"
)

// outbox sends the commands of the run to Temporal, charges each to the budget of the workflow task, and calls back when an
// answer has come.
type outbox struct {
	*execution
	pending pending.Set
	budget  budget
}

// A charger charges a command that the caller sends itself.
type charger interface{ charge(bytes int) }

// charge adds a command to the budget of the workflow task. If the budget is exceeded, charge first lets the workflow task send
// its commands; other coroutines may run in between.
func (o *outbox) charge(bytes int) {
	b := &o.budget
	if b.charged(workflow.GetInfo(o.root).GetCurrentHistoryLength(), bytes) > o.limits.ScheduleBytes && b.spent > bytes {
		_ = workflow.Sleep(o.ctx, time.Millisecond) // ctx is never cancelled
		b.charged(workflow.GetInfo(o.root).GetCurrentHistoryLength(), bytes)
	}
}

// watch calls onReady in the round after a future has become ready.
func (o *outbox) watch(future workflow.Future, onReady func(workflow.Future)) {
	o.pending.Watch(future, onReady)
}

// hasReady reports whether any watched future is ready.
func (o *outbox) hasReady() bool { return o.pending.HasReady() }

// settle calls back for each watched future that is ready.
func (o *outbox) settle() { o.pending.Settle() }

// startActivity schedules an activity. written is the number of bytes in its request that users have written.
func (o *outbox) startActivity(options workflow.ActivityOptions, name string, req any, written int) workflow.Future {
	return o.startActivityWith(o.ctx, options, name, req, written)
}

// startActivityWith schedules an activity under a context that can cancel it.
func (o *outbox) startActivityWith(ctx workflow.Context, options workflow.ActivityOptions, name string, req any, written int) workflow.Future {
	o.charge(activityCharge + written)
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, req)
}

// signal signals another workflow. written is the number of bytes in the argument that users have written.
func (o *outbox) signal(id, name string, arg any, written int) workflow.Future {
	o.charge(commandCharge + written)
	return workflow.SignalExternalWorkflow(o.ctx, id, "", name, arg)
}

// after calls a function after a delay.
func (o *outbox) after(d time.Duration, summary string, do func()) {
	o.charge(commandCharge)
	timer := workflow.NewTimerWithOptions(o.ctx, d, workflow.TimerOptions{Summary: summary})
	o.watch(timer, func(workflow.Future) { do() })
}

// startTimer calls a function after a delay unless the returned function stops the timer before. The caller has charged it.
func (o *outbox) startTimer(d time.Duration, summary string, do func()) (stop func()) {
	ctx, cancel := workflow.WithCancel(o.ctx)
	timer := workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: summary})
	o.watch(timer, func(f workflow.Future) {
		if f.Get(o.ctx, nil) == nil {
			do()
		}
	})
	return cancel
}

package run

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// A local activity is called in one of two ways. A call that decides something (must,
// mustNow) waits for as long as the store is away, and the run shows why. A call that is
// best effort (try) logs its failure, and the run continues without it.

const (
	// maxProblemBytes bounds what the run shows of an error.
	maxProblemBytes = 300
	// longestOutagePause is the longest wait between calls that fail although the store answers.
	longestOutagePause = 5 * time.Minute
)

// errInterrupted is the error of a call that would wait while the run is to be cancelled.
var errInterrupted = errors.New("the run is cancelled")

// outage is what a run knows of the store while calls wait for it.
type outage struct {
	over workflow.Future // ready when the waiting calls may be made again; nil if there never was an outage
	// rounds counts the outages since a call last succeeded after one. A store that answers a
	// probe and fails the call again is given more time in each round.
	rounds  int
	problem string
}

// must calls a local activity until it gives an answer, or an error that no other call would
// change, and is sent with that. The run continues meanwhile.
func (r *run) must(summary, activity string, land func(workflow.Future), args ...any) {
	r.pending.Watch(r.call(summary, activity, args), func(f workflow.Future) {
		err := f.Get(r.ctx, nil)
		if err == nil || !repeatable(err) {
			r.succeeded()
			land(f)
			return
		}
		r.pending.Watch(r.awaitStore(summary, err), func(workflow.Future) { r.must(summary, activity, land, args...) })
	})
}

// mustNow is must for what the run cannot do anything without. The error is errInterrupted
// if someone cancels the run meanwhile, or detached attempts need it; a run that has not begun yet, or has ended, is not
// interrupted.
func (r *run) mustNow(summary, activity string, result any, args ...any) error {
	for {
		err := r.call(summary, activity, args).Get(r.ctx, result)
		if err == nil || !repeatable(err) {
			r.succeeded()
			return err
		}
		over := r.awaitStore(summary, err)
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, func() bool { return over.IsReady() || r.interrupted() })
		if !over.IsReady() {
			return errInterrupted
		}
	}
}

// interrupted reports whether a cancellation waits to be applied, or attempts to be reattached.
func (r *run) interrupted() bool {
	return r.status != nil && !r.core.Over() && (!r.cancelled && r.cancelRequested() || r.detaching.isOverdue())
}

// try calls a local activity once and logs its failure.
func (r *run) try(summary, activity string, result any, args ...any) error {
	err := r.callOnce(summary, activity, args...).Get(r.ctx, result)
	if err != nil {
		workflow.GetLogger(r.ctx).Warn("failed to "+summary+"; the run continues without it", "error", err)
	}
	return err
}

// callOnce is call for what is not repeated.
func (r *run) callOnce(summary, activity string, args ...any) workflow.Future {
	r.charge(answerCharge(activity))
	ctx := workflow.WithLocalActivityOptions(r.ctx, options.Try(summary))
	return workflow.ExecuteLocalActivity(ctx, activity, args...)
}

// call calls a local activity; what it answers is charged before.
func (r *run) call(summary, activity string, args []any) workflow.Future {
	r.charge(answerCharge(activity))
	ctx := workflow.WithLocalActivityOptions(r.ctx, options.Must(summary, r.outage.rounds))
	return workflow.ExecuteLocalActivity(ctx, activity, args...)
}

// repeatable reports whether a call that failed so may succeed another time.
func repeatable(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return !ok || !app.NonRetryable()
}

// awaitStore returns a future that is ready when a call that failed may be made again. All
// calls that wait share it. Temporal repeats the probe, so that an outage adds the same few
// events to the history however long it lasts.
func (r *run) awaitStore(summary string, cause error) workflow.Future {
	o := &r.outage
	if o.problem == "" {
		r.setProblem("waits to " + summary + ": " + causeOf(cause))
	}
	if o.over != nil && !o.over.IsReady() {
		return o.over
	}
	pause := min(time.Second<<min(o.rounds, 10)-time.Second, longestOutagePause)
	o.rounds++
	r.charge(activityCharge + commandCharge)
	over, settle := workflow.NewFuture(r.ctx)
	o.over = over
	workflow.Go(r.ctx, func(ctx workflow.Context) {
		probe := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options.ProbeStore()), names.ProbeStoreActivity, r.home())
		// An error is one of Temporal's; then the call itself finds out how the store is.
		_ = probe.Get(ctx, nil)
		if pause > 0 {
			_ = workflow.NewTimerWithOptions(ctx, pause, workflow.TimerOptions{Summary: summary + " again"}).Get(ctx, nil)
		}
		settle.SetValue(nil)
	})
	return over
}

// succeeded ends the outage, if there is one, when nothing waits any more.
func (r *run) succeeded() {
	if r.outage.over != nil && r.outage.over.IsReady() {
		r.outage.rounds = 0
		r.setProblem("")
	}
}

// setProblem shows why the run cannot continue, in lists too; empty: it can.
func (r *run) setProblem(text string) {
	if text == r.outage.problem {
		return
	}
	r.outage.problem = text
	if r.status != nil {
		r.status.Run.Problem = text
	}
	r.charge(commandCharge)
	if err := workflow.UpsertMemo(r.ctx, map[string]any{names.ProblemMemo: text}); err != nil {
		workflow.GetLogger(r.ctx).Warn("the problem of the run could not be shown", "error", err)
	}
}

// causeOf is an error in a short line.
func causeOf(err error) string {
	text := err.Error()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		text = app.Message()
	}
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > maxProblemBytes {
		text = strings.ToValidUTF8(text[:maxProblemBytes], "")
	}
	return text
}

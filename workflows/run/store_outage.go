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

// A local activity is called in one of two ways. A call that the run depends on (must, mustNow) waits as long as the store is
// unavailable, and the run shows why. A best-effort call (try) logs its failure, and the run continues without it.

const (
	// maxProblemBytes limits the length of an error that the run shows.
	maxProblemBytes = 300
	// longestOutagePause is the longest wait between calls that fail although the store answers.
	longestOutagePause = 5 * time.Minute
)

// errInterrupted is the error of a call that would have to wait while the run is to be cancelled.
var errInterrupted = errors.New("the run is cancelled")

// outage is the state of a store outage while calls wait for its end.
type outage struct {
	over workflow.Future // ready when waiting calls may be repeated; nil if there never was an outage
	// rounds is the number of outages since a call last succeeded. A store that answers the probe but fails the call again gets
	// more time in each round.
	rounds  int
	problem string
}

// must calls a local activity until it returns an answer or a permanent error, and passes that to land. The run continues
// meanwhile.
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

// mustNow blocks the run until a local activity returns an answer or a permanent error. It returns errInterrupted if a person
// cancels the run meanwhile or detached attempts must be reattached. A run that has not begun or has ended is not interrupted.
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

// interrupted reports whether a cancellation is waiting to be applied or attempts are waiting to be reattached.
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

// callOnce calls a local activity without retries.
func (r *run) callOnce(summary, activity string, args ...any) workflow.Future {
	r.charge(answerCharge(activity))
	ctx := workflow.WithLocalActivityOptions(r.ctx, options.Try(summary))
	return workflow.ExecuteLocalActivity(ctx, activity, args...)
}

// call calls a local activity. It charges the answer in advance.
func (r *run) call(summary, activity string, args []any) workflow.Future {
	r.charge(answerCharge(activity))
	ctx := workflow.WithLocalActivityOptions(r.ctx, options.Must(summary, r.outage.rounds))
	return workflow.ExecuteLocalActivity(ctx, activity, args...)
}

// repeatable reports whether a failed call may succeed if it is repeated.
func repeatable(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return !ok || !app.NonRetryable()
}

// awaitStore returns a future that is ready when a failed call may be repeated. All waiting calls share it. Temporal retries
// the probe, so that an outage adds the same few events to the history however long it lasts.
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
		// An error comes from Temporal; the call itself will then find out whether the store is available.
		_ = probe.Get(ctx, nil)
		if pause > 0 {
			_ = workflow.NewTimerWithOptions(ctx, pause, workflow.TimerOptions{Summary: summary + " again"}).Get(ctx, nil)
		}
		settle.SetValue(nil)
	})
	return over
}

// succeeded clears the outage, if there is one, once no call waits.
func (r *run) succeeded() {
	if r.outage.over != nil && r.outage.over.IsReady() {
		r.outage.rounds = 0
		r.setProblem("")
	}
}

// setProblem shows why the run cannot continue, in its status and in lists. An empty text means that it can.
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

// causeOf returns an error as one short line.
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

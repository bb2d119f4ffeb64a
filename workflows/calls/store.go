package calls

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// A local activity is called in one of two ways. A call that the run depends on (Must, MustNow) waits as long as the store is
// unavailable, and the run shows why. A best-effort call (Try) logs its failure, and the run continues without it.

const (
	// maxProblemBytes limits the length of an error that the run shows.
	maxProblemBytes = 300
	// longestOutagePause is the longest wait between calls that fail although the store answers.
	longestOutagePause = 5 * time.Minute
)

// ErrInterrupted is the error of a call that would have to wait while the run is to be cancelled.
var ErrInterrupted = errors.New("the run is cancelled")

// outage is the state of a store outage while calls wait for its end.
type outage struct {
	over workflow.Future // ready when waiting calls may be repeated; nil if there never was an outage
	// rounds is the number of outages since a call last succeeded. A store that answers the probe but fails the call again gets
	// more time in each round.
	rounds  int
	problem string
}

// Must calls a local activity until it returns an answer or a permanent error, and passes that to land. The run continues
// meanwhile.
func (c *Calls) Must(summary, activity string, land func(workflow.Future), args ...any) {
	c.Watch(c.Call(summary, activity, args), func(f workflow.Future) {
		err := f.Get(c.ctx, nil)
		if err == nil || !IsRepeatable(err) {
			c.Succeeded()
			land(f)
			return
		}
		c.Watch(c.AwaitStore(summary, err), func(workflow.Future) { c.Must(summary, activity, land, args...) })
	})
}

// MustNow blocks the run until a local activity returns an answer or a permanent error. It returns ErrInterrupted if a person
// cancels the run meanwhile or detached attempts must be reattached. A run that has not begun or has ended is not interrupted.
func (c *Calls) MustNow(summary, activity string, result any, args ...any) error {
	for {
		err := c.Call(summary, activity, args).Get(c.ctx, result)
		if err == nil || !IsRepeatable(err) {
			c.Succeeded()
			return err
		}
		over := c.AwaitStore(summary, err)
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(c.ctx, func() bool { return over.IsReady() || c.IsInterrupted() })
		if !over.IsReady() {
			return ErrInterrupted
		}
	}
}

// Try calls a local activity once and logs its failure.
func (c *Calls) Try(summary, activity string, result any, args ...any) error {
	err := c.Once(summary, activity, args...).Get(c.ctx, result)
	if err != nil {
		workflow.GetLogger(c.ctx).Warn("failed to "+summary+"; the run continues without it", "error", err)
	}
	return err
}

// Once calls a local activity without retries.
func (c *Calls) Once(summary, activity string, args ...any) workflow.Future {
	c.Charge(answerCharge(activity))
	ctx := workflow.WithLocalActivityOptions(c.ctx, options.Try(summary))
	return workflow.ExecuteLocalActivity(ctx, activity, args...)
}

// Call calls a local activity. It charges the answer in advance.
func (c *Calls) Call(summary, activity string, args []any) workflow.Future {
	c.Charge(answerCharge(activity))
	ctx := workflow.WithLocalActivityOptions(c.ctx, options.Must(summary, c.outage.rounds))
	return workflow.ExecuteLocalActivity(ctx, activity, args...)
}

// IsRepeatable reports whether a failed call may succeed if it is repeated.
func IsRepeatable(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return !ok || !app.NonRetryable()
}

// AwaitStore returns a future that is ready when a failed call may be repeated. All waiting calls share it. Temporal retries
// the probe, so that an outage adds the same few events to the history however long it lasts.
func (c *Calls) AwaitStore(summary string, cause error) workflow.Future {
	if c.outage.problem == "" {
		c.SetProblem("waits to " + summary + ": " + CauseOf(cause))
	}
	if c.outage.over != nil && !c.outage.over.IsReady() {
		return c.outage.over
	}
	pause := min(time.Second<<min(c.outage.rounds, 10)-time.Second, longestOutagePause)
	c.outage.rounds++
	c.Charge(activityCharge + CommandCharge)
	over, settle := workflow.NewFuture(c.ctx)
	c.outage.over = over
	workflow.Go(c.ctx, func(ctx workflow.Context) {
		probe := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options.ProbeStore()), names.ProbeStoreActivity, c.Home)
		// An error comes from Temporal; the call itself will then find out whether the store is available.
		_ = probe.Get(ctx, nil)
		if pause > 0 {
			_ = workflow.NewTimerWithOptions(ctx, pause, workflow.TimerOptions{Summary: summary + " again"}).Get(ctx, nil)
		}
		settle.SetValue(nil)
	})
	return over
}

// Succeeded clears the outage, if there is one, once no call waits.
func (c *Calls) Succeeded() {
	if c.outage.over != nil && c.outage.over.IsReady() {
		c.outage.rounds = 0
		c.SetProblem("")
	}
}

// SetProblem shows why the run cannot continue, in its status and in lists. An empty text means that it can.
func (c *Calls) SetProblem(text string) {
	if text == c.outage.problem {
		return
	}
	c.outage.problem = text
	c.ShowProblem(text)
	c.Charge(CommandCharge)
	if err := workflow.UpsertMemo(c.ctx, map[string]any{names.ProblemMemo: text}); err != nil {
		workflow.GetLogger(c.ctx).Warn("could not show the problem of the run", "error", err)
	}
}

// Problem returns why the run cannot continue, or "" if it can.
func (c *Calls) Problem() string { return c.outage.problem }

// CauseOf returns an error as one short line.
func CauseOf(err error) string {
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

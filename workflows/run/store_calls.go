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

// storeCalls makes the run's calls of local activities. It owns the state of a store outage while calls wait for its end.
type storeCalls struct {
	*execution
	outbox storeOutbox

	// isInterrupted reports whether a call that waits for the store is to give up.
	isInterrupted func() bool

	over workflow.Future // ready when waiting calls may be repeated; nil if there never was an outage
	// rounds is the number of outages since a call last succeeded. A store that answers the probe but fails the call again gets
	// more time in each round.
	rounds  int
	problem string
}

// The storeCalls use these parts of other components.
type (
	storeOutbox interface {
		charge(bytes int)
		watch(future workflow.Future, onReady func(workflow.Future))
	}
)

// A mustCaller blocks the run until a local activity returns an answer or a permanent error.
type mustCaller interface {
	mustNow(summary, activity string, result any, args ...any) error
}

// A caller calls a local activity and passes its answer or permanent error to land. The run continues meanwhile.
type caller interface {
	must(summary, activity string, land func(workflow.Future), args ...any)
}

// An outageWaiter waits until a failed call may be repeated, and records that a call has succeeded.
type outageWaiter interface {
	awaitStore(summary string, cause error) workflow.Future
	succeeded()
}

// must calls a local activity until it returns an answer or a permanent error, and passes that to land. The run continues
// meanwhile.
func (s *storeCalls) must(summary, activity string, land func(workflow.Future), args ...any) {
	s.outbox.watch(s.call(summary, activity, args), func(f workflow.Future) {
		err := f.Get(s.ctx, nil)
		if err == nil || !isRepeatable(err) {
			s.succeeded()
			land(f)
			return
		}
		s.outbox.watch(s.awaitStore(summary, err), func(workflow.Future) { s.must(summary, activity, land, args...) })
	})
}

// mustNow blocks the run until a local activity returns an answer or a permanent error. It returns errInterrupted if a person
// cancels the run meanwhile or detached attempts must be reattached. A run that has not begun or has ended is not interrupted.
func (s *storeCalls) mustNow(summary, activity string, result any, args ...any) error {
	for {
		err := s.call(summary, activity, args).Get(s.ctx, result)
		if err == nil || !isRepeatable(err) {
			s.succeeded()
			return err
		}
		over := s.awaitStore(summary, err)
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(s.ctx, func() bool { return over.IsReady() || s.isInterrupted() })
		if !over.IsReady() {
			return errInterrupted
		}
	}
}

// try calls a local activity once and logs its failure.
func (s *storeCalls) try(summary, activity string, result any, args ...any) error {
	err := s.callOnce(summary, activity, args...).Get(s.ctx, result)
	if err != nil {
		workflow.GetLogger(s.ctx).Warn("failed to "+summary+"; the run continues without it", "error", err)
	}
	return err
}

// callOnce calls a local activity without retries.
func (s *storeCalls) callOnce(summary, activity string, args ...any) workflow.Future {
	s.outbox.charge(answerCharge(activity))
	ctx := workflow.WithLocalActivityOptions(s.ctx, options.Try(summary))
	return workflow.ExecuteLocalActivity(ctx, activity, args...)
}

// call calls a local activity. It charges the answer in advance.
func (s *storeCalls) call(summary, activity string, args []any) workflow.Future {
	s.outbox.charge(answerCharge(activity))
	ctx := workflow.WithLocalActivityOptions(s.ctx, options.Must(summary, s.rounds))
	return workflow.ExecuteLocalActivity(ctx, activity, args...)
}

// isRepeatable reports whether a failed call may succeed if it is repeated.
func isRepeatable(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return !ok || !app.NonRetryable()
}

// awaitStore returns a future that is ready when a failed call may be repeated. All waiting calls share it. Temporal retries
// the probe, so that an outage adds the same few events to the history however long it lasts.
func (s *storeCalls) awaitStore(summary string, cause error) workflow.Future {
	if s.problem == "" {
		s.setProblem("waits to " + summary + ": " + causeOf(cause))
	}
	if s.over != nil && !s.over.IsReady() {
		return s.over
	}
	pause := min(time.Second<<min(s.rounds, 10)-time.Second, longestOutagePause)
	s.rounds++
	s.outbox.charge(activityCharge + commandCharge)
	over, settle := workflow.NewFuture(s.ctx)
	s.over = over
	workflow.Go(s.ctx, func(ctx workflow.Context) {
		probe := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options.ProbeStore()), names.ProbeStoreActivity, s.home())
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
func (s *storeCalls) succeeded() {
	if s.over != nil && s.over.IsReady() {
		s.rounds = 0
		s.setProblem("")
	}
}

// setProblem shows why the run cannot continue, in its status and in lists. An empty text means that it can.
func (s *storeCalls) setProblem(text string) {
	if text == s.problem {
		return
	}
	s.problem = text
	if s.status != nil {
		s.status.SetProblem(text)
	}
	s.outbox.charge(commandCharge)
	if err := workflow.UpsertMemo(s.ctx, map[string]any{names.ProblemMemo: text}); err != nil {
		workflow.GetLogger(s.ctx).Warn("could not show the problem of the run", "error", err)
	}
}

// shownProblem returns why the run cannot continue, or "" if it can.
func (s *storeCalls) shownProblem() string { return s.problem }

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

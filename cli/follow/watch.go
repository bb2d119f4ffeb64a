package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/tui"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

const (
	// cancelTimeout bounds the request to cancel a run.
	cancelTimeout = 10 * time.Second
	// ForceAfter is how long an interrupted run may take to end before the command kills its programs. A task gets 10 s
	// between its stop signal and SIGKILL, unless it sets more.
	ForceAfter = 11 * time.Second
	// KilledEndTimeout is how long a local run may take to end after its programs were killed.
	KilledEndTimeout = 5 * time.Second
	// ForceTimeout bounds the request to end a run by force.
	ForceTimeout = 1500 * time.Millisecond
	// ForcedEndTimeout is how long the command waits to see and show the end of a run that it ended by force.
	ForcedEndTimeout = time.Second
	// forcedStopTimeout is how long the other parts of the process may then take to stop.
	forcedStopTimeout = 3 * time.Second
	// AnswerTimeout is how long a second signal waits for the answer to the cancellation of a run on a gateway.
	AnswerTimeout = 5 * time.Second
	// LogsTimeout is how long logs may lag behind the end of their run. A gateway waits a minute for logs that arrive late.
	LogsTimeout = 75 * time.Second
	// interruptedLogsTimeout is the same for an interrupted run.
	interruptedLogsTimeout = 10 * time.Second
)

// errNoAnswer is why the request to cancel a run is given up after a second signal.
var errNoAnswer = errors.New("has not answered")

// Watcher follows a run to its end and prints how it ended.
type Watcher struct {
	Terminal *Terminal
	Client   *client.Client
	// Run is the ID of the run.
	Run string
	// Format is the format of standard output.
	Format string
	// Logs also shows the output of the tasks.
	Logs bool
	// OwnsRun makes an interrupt cancel the run. The loss of the terminal cancels it only if the run is Local; else the
	// run continues.
	OwnsRun bool
	// Local holds the other parts of this process if they serve the run's gateway and logs. It is nil for a run on a
	// gateway elsewhere.
	Local LocalParts
	// HasFinally is set if an owned run has `finally`.
	HasFinally bool
}

// LocalParts controls the parts of Switchyard that run in the process of a watcher.
type LocalParts interface {
	// ExtraGrace returns how much longer than the usual 10 s a running program may take to end.
	ExtraGrace() time.Duration
	// EndGrace kills programs that have already been asked to end.
	EndGrace()
	// StopWithin bounds the time that all parts take to stop.
	StopWithin(time.Duration)
}

// Watch returns nil if the run has completed, and otherwise an error with the exit code for its end. An interrupt of
// the command cancels ctx.
func (w *Watcher) Watch(ctx context.Context) error {
	follower := &follower{terminal: w.Terminal, client: w.Client, run: w.Run, show: w.progress()}
	following := ctx
	var sent cancellation
	if w.OwnsRun {
		// The watcher follows the run to the end of its cancellation.
		var ending sync.WaitGroup
		defer ending.Wait()
		var leave context.CancelFunc
		following, leave = context.WithCancel(context.WithoutCancel(ctx))
		defer leave()
		begun := make(chan struct{})
		follower.begun, follower.interrupted = begun, ctx.Done()
		further, steps, again := &interruption{now: w.Terminal.Now, hasFinally: w.HasFinally}, make(chan step, 4), make(chan struct{})
		if w.Local != nil {
			w.Terminal.Divert(func(os.Signal) bool { return w.takeSignal(ctx, further, steps) })
		} else {
			w.Terminal.OnSecondSignal(func() { close(again) })
		}
		defer w.releaseSignals()
		follower.interrupt = func() error {
			if w.isLeftRunning(ctx) {
				leave()
				return context.Cause(ctx)
			}
			if w.Local != nil {
				ending.Go(func() { w.endLocal(following, leave, further, steps, begun) })
				if !isClosed(begun) {
					sent = w.cancel(following, "cancelling the run; "+w.ifFinally("finally runs after that; ")+"interrupt again to kill running tasks")
				}
				return sent.err
			}
			// The request continues when the command leaves the run.
			requesting, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
			defer giveUp(nil)
			answered := make(chan struct{})
			ending.Go(func() { w.awaitEnd(following, leave, giveUp, again, answered) })
			says := "cancelling the run; " + w.ifFinally("finally runs after that; ")
			if isClosed(begun) {
				says = fmt.Sprintf("finally of run %[1]s runs on; `switchyard runs cancel %[1]s --now` ends it; ", w.Run)
			}
			sent = w.cancel(requesting, says+"interrupt again to stop waiting for its end")
			close(answered)
			return sent.err
		}
	}
	finishLogs := w.followLogs(following)
	status, err := follower.follow(following)
	if w.OwnsRun {
		w.releaseSignals()
	}
	finishLogs(ctx)
	if err != nil {
		if ctx.Err() != nil && !status.Ended() {
			w.printLeft(ctx, status.Run(), sent)
		}
		return err
	}
	if err := w.printEnd(following, status); err != nil {
		return err
	}
	switch {
	case w.OwnsRun && ctx.Err() != nil:
		return exit.Silent(exit.CodeInterrupted)
	case status.Run().GetState() != v1.RunCompleted:
		return exit.Silent(exit.CodeNotDone)
	}
	return nil
}

// releaseSignals ends the handling of signals after the first one.
func (w *Watcher) releaseSignals() {
	w.Terminal.Divert(nil)
	w.Terminal.OnSecondSignal(nil)
}

// printLeft prints the fate of a run that an interrupted command no longer follows. run is its last known state, and sent the
// request to cancel it.
func (w *Watcher) printLeft(ctx context.Context, run *v1.Run, sent cancellation) {
	text, detail := "run %[1]s continues; `switchyard runs cancel %[1]s` stops it\n", ""
	switch {
	case !w.OwnsRun || w.isLeftRunning(ctx):
		if phrase.IsEnding(run.GetError()) {
			text, detail = "run %[1]s %[2]s; `switchyard runs cancel --force %[1]s` ends it at once\n", words.OneLine(run.GetError())
		}
	case w.Local != nil:
		return // the run ends with this process
	case sent.err != nil:
		text = "run %[1]s may continue, because its cancellation was not confirmed: %[2]s\n  `switchyard runs get %[1]s` shows its state; `switchyard runs cancel %[1]s` stops it\n"
		detail = sent.err.Error()
	case !sent.isSent:
	case sent.answer == nil:
		text = "run %[1]s had already ended; `switchyard runs get %[1]s` shows how\n"
	case sent.answer.GetFinallyRuns() || phrase.IsInFinally(run.GetError()):
		text = "finally of run %[1]s runs on; `switchyard runs cancel %[1]s --now` ends it\n"
	default:
		text, detail = "run %[1]s is being cancelled; `switchyard runs cancel --force %[1]s` ends it at once%[2]s\n", w.ifFinally(", without finally")
	}
	fmt.Fprintf(w.Terminal.Screen, text, w.Run, detail)
}

// isLeftRunning reports whether an owned run continues after the interruption.
func (w *Watcher) isLeftRunning(ctx context.Context) bool {
	return w.Local == nil && errors.Is(context.Cause(ctx), exit.ErrHungUp)
}

func (w *Watcher) progress() progress {
	p := progress(both{newProgress(w.Terminal), &approvalPrompt{terminal: w.Terminal, gateway: w.Client.URL()}})
	if w.Format == output.JSONL {
		return both{p, jsonLines{w.Terminal}}
	}
	return p
}

// takeSignal passes the step of a signal after the first one on. It returns false for the first signal, which ends ctx, and for one that
// ends the process.
func (w *Watcher) takeSignal(ctx context.Context, further *interruption, steps chan<- step) bool {
	if ctx.Err() == nil {
		return false
	}
	switch next := further.interrupted(); next {
	case quit:
		return false
	case ignore:
		fmt.Fprintf(w.Terminal.Screen, "interrupt ignored: one counts from %v after the message that says what it does\n", readingTime)
	default:
		steps <- next
	}
	return true
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// cancellation is a request to cancel the run of a watcher, and its result.
type cancellation struct {
	isSent bool
	answer *v1.CancelRunResponse // nil if the run had already ended, or after an error
	err    error
}

// cancel cancels the run after the first interrupt. The request has no ID, so that it never ends `finally`.
func (w *Watcher) cancel(ctx context.Context, says string) cancellation {
	fmt.Fprintln(w.Terminal.Screen, says)
	answer, err := w.sendCancel(ctx, &v1.CancelRunRequest{Id: w.Run, Reason: "interrupted"})
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		err = fmt.Errorf("the gateway at %s %w within %v", w.Client.URL(), errNoAnswer, w.Terminal.AnswerTimeout)
	}
	return cancellation{true, answer, err}
}

// sendCancel sends a cancellation. It returns nil and no error if the run has already ended.
func (w *Watcher) sendCancel(ctx context.Context, req *v1.CancelRunRequest) (*v1.CancelRunResponse, error) {
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	res, err := client.Call(ctx, w.Client, w.Client.Runs.CancelRun, req)
	if f, ok := errors.AsType[*exit.Error](err); ok && f.Code == exit.CodeNotDone {
		return nil, nil
	}
	return res, err
}

// awaitEnd waits for the end of a run on a gateway, which cancels ctx. answered is closed when the gateway has answered the request to
// cancel the run. A second signal closes again; the command then leaves the run once the gateway has answered, or gives the request up.
func (w *Watcher) awaitEnd(ctx context.Context, leave context.CancelFunc, giveUp context.CancelCauseFunc, again, answered <-chan struct{}) {
	var late, tooLate <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			if answered == nil {
				leave()
				return
			}
			again, tooLate = nil, time.After(w.Terminal.AnswerTimeout)
			fmt.Fprintf(w.Terminal.Screen, "waiting up to %v for the gateway to confirm the cancellation; interrupt again to quit at once\n", w.Terminal.AnswerTimeout)
		case <-answered:
			if again == nil {
				leave()
				return
			}
			answered, late = nil, time.After(w.Terminal.ForceAfter)
		case <-tooLate:
			giveUp(errNoAnswer)
			leave()
			return
		case <-late:
			fmt.Fprintf(w.Terminal.Screen, "run %[1]s has not ended yet; `switchyard runs cancel --force %[1]s` ends it at once%[2]s\n", w.Run, w.ifFinally(", without finally"))
		}
	}
}

// endLocal ends a cancelled run in this process, step by step as i decides. Steps of further interrupts come through steps, begun is closed
// when `finally` runs, and ForceAfter limits the wait. ctx is done when the run has ended. If the end of a forced run is not seen soon,
// endLocal calls giveUp.
func (w *Watcher) endLocal(ctx context.Context, giveUp context.CancelFunc, i *interruption, steps <-chan step, begun <-chan struct{}) {
	late := time.After(w.Terminal.ForceAfter + w.Local.ExtraGrace())
	for {
		var next step
		select {
		case <-ctx.Done():
			return
		case next = <-steps:
		case <-begun:
			begun, next = nil, i.finallyBegan()
		case <-late:
			next = i.late()
		}
		switch next {
		case kill:
			w.Local.EndGrace()
			late = time.After(w.Terminal.KilledEndTimeout)
			w.announce(i, kill, "killing running tasks; interrupt again to quit at once"+w.ifFinally(", without finally"))
		case awaitFinally:
			w.announce(i, awaitFinally, "the tasks have ended and finally runs; interrupt again to end it")
		case endFinally:
			late = time.After(w.Terminal.ForceAfter + w.Local.ExtraGrace())
			if _, err := w.sendCancel(ctx, &v1.CancelRunRequest{Id: w.Run, Reason: "interrupted again", Now: true}); err != nil {
				i.finallyContinues()
				w.announce(i, awaitFinally, fmt.Sprintf("finally could not be ended: %s; interrupt again to try again", err))
				continue
			}
			w.announce(i, endFinally, "ending finally; interrupt again to kill its running tasks")
		case force:
			w.endByForce(ctx, giveUp)
			return
		}
	}
}

// announce says what the next interrupt does, unless a later step has followed.
func (w *Watcher) announce(i *interruption, s step, text string) {
	if i.isNewest(s) {
		fmt.Fprintln(w.Terminal.Screen, text)
		i.tell(s)
	}
}

// ifFinally returns a text if the run has `finally`, and "" otherwise.
func (w *Watcher) ifFinally(text string) string {
	if !w.HasFinally {
		return ""
	}
	return text
}

// endByForce ends a local run by force. If the end is not seen soon, it calls giveUp.
func (w *Watcher) endByForce(ctx context.Context, giveUp context.CancelFunc) {
	fmt.Fprintln(w.Terminal.Screen, "the run has not ended yet; ending it by force")
	w.Local.StopWithin(forcedStopTimeout)
	// The run may end before the reply arrives.
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Terminal.ForceTimeout)
	defer cancel()
	res, err := client.Call(calling, w.Client, w.Client.Runs.CancelRun, &v1.CancelRunRequest{Id: w.Run, Reason: "interrupted", Force: true})
	switch {
	case err == nil:
		fmt.Fprintln(w.Terminal.Screen, forcedText(res))
	case ctx.Err() == nil:
		fmt.Fprintf(w.Terminal.Screen, "run %s could not be ended by force: %s\n", w.Run, err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(w.Terminal.ForcedEndTimeout):
		giveUp()
	}
}

// followLogs shows the output of tasks until the caller calls finish, which waits for the remaining output. An interrupt
// during finish, which cancels interrupt, ends the wait.
func (w *Watcher) followLogs(following context.Context) (finish func(interrupt context.Context)) {
	if !w.Logs {
		return func(context.Context) {}
	}
	ctx, cancel := context.WithCancelCause(following)
	var printing sync.WaitGroup
	printing.Go(func() {
		p := &output.LogPrinter{Stdout: w.Terminal.Screen, Stderr: w.Terminal.Screen, Prefix: true, StdoutPlain: w.Terminal.PlainScreen, StderrPlain: w.Terminal.PlainScreen}
		logs := &client.LogStream{Client: w.Client, Request: &v1.StreamRunLogsRequest{Id: w.Run, Follow: true}, OnLost: func() {}}
		err := errors.Join(logs.Read(ctx, p), p.Flush())
		if err != nil && following.Err() == nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			fmt.Fprintf(w.Terminal.Screen, "logs are no longer shown: %s\n", err)
		}
		if missing := logs.Missing(); missing != nil {
			fmt.Fprintln(w.Terminal.Screen, missing)
		}
	})
	return func(interrupt context.Context) {
		limit := w.Terminal.LogsTimeout
		if interrupt.Err() != nil {
			limit = min(limit, interruptedLogsTimeout)
		} else {
			defer context.AfterFunc(interrupt, func() { cancel(context.Cause(interrupt)) })()
		}
		late := time.AfterFunc(limit, func() { cancel(fmt.Errorf("not all of them have arrived within %v of the end of the run", limit)) })
		printing.Wait()
		late.Stop()
		cancel(nil)
	}
}

// printEnd prints the failures and the end of a run on standard error, and its document on standard output.
func (w *Watcher) printEnd(ctx context.Context, status *tui.Status) error {
	style := w.Terminal.Style
	var lines []string
	if status.Run().GetState() == v1.RunFailed {
		if reported := tui.ReportedFailures(status); len(reported) > 0 {
			err := w.Client.RunPages(ctx, &v1.GetRunRequest{Id: w.Run, Tasks: reported}, func(run *v1.Run) error {
				status.Apply(&v1.WatchRunResponse{Run: run})
				return nil
			})
			if err != nil {
				return err
			}
		}
		lines = tui.Failures(status, style, w.logHint)
	}
	if len(lines) == 0 && status.Run().GetError() != "" {
		lines = append(lines, words.OneLine(status.Run().GetError()))
	}
	for _, line := range append(lines, tui.Summary(status, w.Terminal.Now(), style)) {
		if _, err := fmt.Fprintln(w.Terminal.Screen, line); err != nil {
			return err
		}
	}
	switch w.Format {
	case output.JSON:
		return w.Client.WriteRun(ctx, w.Run, &output.RunWriter{Out: w.Terminal.Stdout})
	case output.JSONL:
		return w.Client.WriteRun(ctx, w.Run, &output.RunWriter{Out: w.Terminal.Stdout, OneLine: true})
	}
	return nil
}

// logHint returns how to see all output of a task, or "" if all of it has been shown.
func (w *Watcher) logHint(task string) string {
	switch {
	case w.Logs:
		return ""
	case w.Local != nil:
		return "run with --logs to see all output"
	}
	return fmt.Sprintf("all output: switchyard runs logs %s %s", w.Run, output.ShellWord(task))
}

// ForcedText describes the result of ending a run by force.
func ForcedText(res *v1.CancelRunResponse) string {
	text := forcedText(res)
	if res.GetFinallyLeftOut() {
		text += fmt.Sprintf("\nits finally does not run; `switchyard runs retry %s --finally-only` runs it", res.GetId())
	}
	return text
}

// forcedText describes it without what can follow on a gateway.
func forcedText(res *v1.CancelRunResponse) string {
	return fmt.Sprintf("run %s has been ended by force, with %d child runs and parts of fan-outs; nodes are stopping %d attempts",
		res.GetId(), res.GetChildren(), res.GetAttempts())
}

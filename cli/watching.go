package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// cancelTimeout bounds the request to cancel a run.
	cancelTimeout = 10 * time.Second
	// forceAfter is how long an interrupted run may take to end before it is ended by
	// force: a task gets 10 s between SIGTERM and SIGKILL.
	forceAfter = 11 * time.Second
	// forceTimeout bounds the request to end a run by force.
	forceTimeout = 1500 * time.Millisecond
	// forcedEndTimeout is how long the end of a run that was ended by force may take to be seen and shown.
	forcedEndTimeout = time.Second
	// forcedStopTimeout is how long what the process runs beside may take to stop then.
	forcedStopTimeout = 3 * time.Second
	// logsTimeout is how long logs may lag behind the end of their run.
	logsTimeout = 10 * time.Second
)

// watching shows a run to its end and tells how it ended.
type watching struct {
	sys    *system
	api    *api
	id     string
	output string
	// logs shows what the tasks print, too.
	logs bool
	// own: the run is ours, an interrupt cancels it; the end of the terminal does only
	// where the run goes with this process. Otherwise the run goes on.
	own bool
	// local: the run's gateway and logs go with this process.
	local bool
	// stopWithin bounds the stop of what the process runs beside, for a run that was ended
	// by force; nil: there is nothing to stop.
	stopWithin func(time.Duration)
}

// watch returns nil when the run has completed, and otherwise a failure that
// says how it ended. ctx is done when the command is interrupted.
func (w *watching) watch(ctx context.Context) error {
	follower := &follower{sys: w.sys, api: w.api, id: w.id, show: w.progress()}
	following := ctx
	if w.own {
		// The run is followed to the end of its cancellation.
		var forcing sync.WaitGroup
		defer forcing.Wait()
		var leave context.CancelFunc
		following, leave = context.WithCancel(context.WithoutCancel(ctx))
		defer leave()
		follower.interrupted = ctx.Done()
		follower.interrupt = func() error {
			if w.leaves(ctx) {
				leave()
				return context.Cause(ctx)
			}
			again := make(chan struct{})
			w.sys.hurry.set(func() { close(again) })
			forcing.Go(func() { w.forceUnlessEnded(following, leave, again) })
			return w.cancel(following)
		}
	}
	finishLogs := w.followLogs(following)
	board, err := follower.follow(following)
	finishLogs()
	if err != nil {
		if (!w.own || w.leaves(ctx)) && ctx.Err() != nil && !board.Ended() {
			fmt.Fprintf(w.sys.screen, "run %s goes on; `switchyard runs cancel %s` stops it\n", w.id, w.id)
		}
		return err
	}
	if err := w.finish(following, board); err != nil {
		return err
	}
	switch {
	case w.own && ctx.Err() != nil:
		return silent(exitInterrupted)
	case board.Run().GetState() != v1.RunCompleted:
		return silent(exitNotDone)
	}
	return nil
}

// leaves reports whether a run of our own is left to itself after the interruption.
func (w *watching) leaves(ctx context.Context) bool {
	return !w.local && errors.Is(context.Cause(ctx), errHungUp)
}

func (w *watching) progress() progress {
	p := progress(both{newProgress(w.sys), &approvals{sys: w.sys, gateway: w.api.url}})
	if w.output == formatJSONL {
		return both{p, jsonLines{w.sys}}
	}
	return p
}

// cancel cancels the run after the first interrupt.
func (w *watching) cancel(ctx context.Context) error {
	fmt.Fprintln(w.sys.screen, "cancelling the run; once more to end it by force")
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	_, err := call(ctx, w.api, w.api.calls.CancelRun, &v1.CancelRunRequest{Id: w.id, Reason: "interrupted"})
	if f, ok := errors.AsType[*failure](err); ok && f.code == exitNotDone {
		return nil // it has ended by itself
	}
	if err != nil {
		return fmt.Errorf("run %s could not be cancelled: %w", w.id, err)
	}
	return nil
}

// forceUnlessEnded ends the run by force when again is closed, or when the run has not
// ended after a while; ctx is done when it has. What does not answer then is given up.
func (w *watching) forceUnlessEnded(ctx context.Context, giveUp context.CancelFunc, again <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-again:
	case <-time.After(w.sys.forceAfter):
		fmt.Fprintln(w.sys.screen, "the run has not ended yet; it is ended by force")
	}
	if w.stopWithin != nil {
		w.stopWithin(forcedStopTimeout)
	}
	// The run may end before the answer has come.
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceTimeout)
	defer cancel()
	res, err := call(calling, w.api, w.api.calls.CancelRun, &v1.CancelRunRequest{Id: w.id, Reason: "interrupted", Force: true})
	switch {
	case err == nil:
		fmt.Fprintln(w.sys.screen, saidForced(res))
	case ctx.Err() == nil:
		fmt.Fprintf(w.sys.screen, "run %s could not be ended by force: %s\n", w.id, err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(forcedEndTimeout):
		giveUp()
	}
}

// followLogs shows what tasks print until finish is called, which waits for the
// rest of it.
func (w *watching) followLogs(ctx context.Context) (finish func()) {
	if !w.logs {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var printing sync.WaitGroup
	printing.Go(func() {
		p := &logPrinter{stdout: w.sys.screen, stderr: w.sys.screen, prefix: true, stdoutPlain: w.sys.stderrPlain, stderrPlain: w.sys.stderrPlain}
		logs := &logStream{api: w.api, req: &v1.StreamRunLogsRequest{Id: w.id, Follow: true}, lost: func(error) {}}
		err := errors.Join(logs.read(ctx, p), p.flush())
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(w.sys.screen, "no more logs: %s\n", err)
		}
		if missing := logs.complete(); missing != nil {
			fmt.Fprintln(w.sys.screen, missing)
		}
	})
	return func() {
		late := time.AfterFunc(logsTimeout, cancel)
		printing.Wait()
		late.Stop()
		cancel()
	}
}

// finish prints what there is to say when a run has ended: on standard error
// what went wrong, and last how it ended; the document on standard output.
func (w *watching) finish(ctx context.Context, board *tui.Board) error {
	style := w.sys.progressStyle()
	var lines []string
	if board.Run().GetState() == v1.RunFailed {
		if told := tui.Told(board); len(told) > 0 {
			err := w.api.pages(ctx, &v1.GetRunRequest{Id: w.id, Tasks: told}, func(run *v1.Run) error {
				board.Apply(&v1.WatchRunResponse{Run: run})
				return nil
			})
			if err != nil {
				return err
			}
		}
		lines = tui.Failures(board, style, w.more)
	}
	if len(lines) == 0 && board.Run().GetError() != "" {
		lines = append(lines, tui.OneLine(board.Run().GetError()))
	}
	for _, line := range append(lines, tui.Summary(board, w.sys.now(), style)) {
		if _, err := fmt.Fprintln(w.sys.screen, line); err != nil {
			return err
		}
	}
	switch w.output {
	case formatJSON:
		return w.api.writeRun(ctx, w.id, &runWriter{w: w.sys.stdout})
	case formatJSONL:
		return w.api.writeRun(ctx, w.id, &runWriter{w: w.sys.stdout, line: true})
	}
	return nil
}

// more says how to see all that a task printed; "": it has been shown.
func (w *watching) more(task string) string {
	switch {
	case w.logs:
		return ""
	case w.local:
		return "run with --logs to see all of it"
	}
	return fmt.Sprintf("all of it: switchyard runs logs %s %s", w.id, shellWord(task))
}

package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/program/streamjson"
	v1 "switchyard/proto/switchyard/v1"
)

// Causes for ending the process tree of a program.
var (
	errStalled  = errors.New("the program has stalled")
	errFinished = errors.New("the program has given its result")
	errJournal  = errors.New("the session could not be recorded")
)

// watch follows the lines of a program, and ends its process tree when it has printed its result or is silent for too
// long. Its methods must be called sequentially.
type watch struct {
	options Options
	log     io.Writer // or nil
	// ctx is the context of the program; end ends it.
	ctx        context.Context
	end        context.CancelCauseFunc
	lines      *streamjson.LineWriter
	transcript *streamjson.Transcript
	// timer ends the tree: after the stall timeout or, once there is a result, after the grace period. It is stopped
	// while a line is handled, so that a slow log does not count as a stall.
	timer *time.Timer
	// inTime reports whether the result came before anything ended the tree.
	inTime bool

	logErr, journalErr error
}

func newWatch(ctx context.Context, end context.CancelCauseFunc, o Options, log io.Writer) *watch {
	w := &watch{options: o, log: log, ctx: ctx, end: end, transcript: streamjson.NewTranscript(time.Now)}
	w.lines = &streamjson.LineWriter{OnLine: w.onLine}
	return w
}

// begin starts the stall timer for the first line.
func (w *watch) begin() {
	w.timer = time.AfterFunc(w.options.StallTimeout, func() { w.end(errStalled) })
}

// close flushes the last line after the program has ended, and returns the errors of handling lines.
func (w *watch) close() error {
	_ = w.lines.Flush()
	if w.timer != nil {
		w.timer.Stop()
	}
	return errors.Join(w.logErr, w.journalErr)
}

// onLine handles a line. It always returns nil, because an error would end the stream.
func (w *watch) onLine(line []byte, cut int64) error {
	if w.transcript.Result != nil {
		w.write(w.transcript.Add(line, cut))
		return nil
	}
	w.timer.Stop()
	session := w.transcript.Session
	w.write(w.transcript.Add(line, cut))
	if w.transcript.Session != session && w.options.OnSession != nil {
		if err := w.options.OnSession(w.transcript.Session); err != nil {
			w.journalErr = fmt.Errorf("record session %s: %w", w.transcript.Session, err)
			w.end(errJournal)
		}
	}
	if w.transcript.Result != nil {
		w.inTime = w.ctx.Err() == nil
		w.timer = time.AfterFunc(w.options.Grace, func() { w.end(errFinished) })
		return nil
	}
	w.timer.Reset(w.options.StallTimeout)
	return nil
}

// write writes to the log until a write fails.
func (w *watch) write(text string) {
	if text == "" || w.log == nil || w.logErr != nil {
		return
	}
	if _, err := io.WriteString(w.log, text); err != nil {
		w.logErr = fmt.Errorf("write the log: %w", err)
	}
}

// conclude returns the result of the attempt, and the failure unless the exit code explains it. lost reports whether
// the lease is lost.
func (w *watch) conclude(r executor.Result, lost bool) (executor.Result, *executor.Failure) {
	switch {
	case lost:
		return r, nil
	case w.inTime:
		failure := w.transcript.Failure()
		r.Stopped, r.OOMKilled, r.Signal = false, false, ""
		if failure == nil {
			r.ExitCode = 0
		}
		return r, failure
	case r.Stopped && context.Cause(w.ctx) == errStalled:
		r.Stopped = false
		return r, &executor.Failure{Reason: v1.ReasonStalled, Err: fmt.Errorf("the program printed no line for %s", w.options.StallTimeout)}
	case r.Stopped, r.OOMKilled, r.Signal != "", r.ExitCode != 0:
		return r, nil
	}
	return r, &executor.Failure{Reason: v1.ReasonExitCode, Err: errors.New("the program ended without a result line")}
}

// report returns what the program has reported.
func (w *watch) report(failure *executor.Failure) Report {
	t := w.transcript
	report := Report{
		Text: t.Text(), Output: t.Output(), Usage: t.Usage(), Events: t.Events(), Session: t.Session, Failure: failure,
	}
	if report.Session == "" {
		report.Session = w.options.Resume
		report.Usage.Session = report.Session
	}
	return report
}

package taskrunner

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// taskLog is the log of an attempt, or of a batch. Its Writer is nil until the log is open.
type taskLog struct {
	*logs.Writer
	store   *store.Store
	logger  *slog.Logger
	req     *historyv1.ExecuteRequest
	options logs.Options
}

// newLog returns the log of the work, which is not open yet. Its size is bounded by the node's limit, or by the task's if
// that is smaller, and the secrets of the work are masked.
func (w *work) newLog() taskLog {
	most := cmp.Or(w.node.MaxOutput, logs.DefaultMaxBytes)
	if asked := int64(w.attempt.req.GetResources().GetMaxOutputMb()) << 20; asked > 0 {
		most = min(most, asked)
	}
	return taskLog{store: w.node.Store, logger: w.node.Logger, req: w.attempt.req, options: logs.Options{MaxBytes: most, Masks: w.secrets.masks}}
}

// of returns the name of the log of a member's dispatch.
func (l *taskLog) of(m *member) logs.Attempt {
	return logs.Attempt{
		Run: names.Home(l.req.GetRunId(), l.req.GetChain()), Generation: l.req.GetGeneration(), Task: m.name, Attempt: m.attempt, Claim: m.claim,
	}
}

// open begins the log of an attempt, or resumes the log of an earlier dispatch of a remote attempt. The error is that of
// ctx.
func (l *taskLog) open(ctx context.Context, m *member) error {
	if v1.IsRemote(l.req.GetType()) && l.req.GetContinues() {
		return l.resume(ctx, m)
	}
	l.Writer = logs.NewWriter(l.store, l.of(m), l.options)
	return nil
}

// openBatch begins the log of a batch.
func (l *taskLog) openBatch() {
	l.Writer = logs.NewWriter(l.store, logs.Attempt{Run: names.Home(l.req.GetRunId(), l.req.GetChain()), Generation: l.req.GetGeneration(), Task: batchName(l.req), Attempt: l.req.GetAttempt(), Claim: l.req.GetClaim()}, l.options)
}

// resume continues the log that an earlier worker has written. The error is that of ctx.
func (l *taskLog) resume(ctx context.Context, m *member) error {
	for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
		var err error
		of := l.of(m)
		if v1.IsRemote(l.req.GetType()) {
			of, err = logs.Shared(ctx, l.store, of)
		}
		if err == nil {
			l.Writer, err = logs.Resume(ctx, l.store, of, l.options)
		}
		if err == nil {
			return nil
		}
		l.logger.Debug("a log could not be read", "run", l.req.GetRunId(), "task", m.name, "error", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// writeNotices writes the notices about an attempt to its log.
func (l *taskLog) writeNotices(notices ...string) {
	for _, text := range notices {
		l.Notice(text)
	}
}

// closeOrSuspend closes the log of an attempt. It suspends the log if another worker continues the attempt: this worker
// has left the attempt, or the answer of a remote attempt is "moved". The result of an attempt whose log lacks output warns of that.
func (l *taskLog) closeOrSuspend(ctx context.Context, isLeft bool, res *historyv1.ExecuteResponse) {
	if isLeft || v1.IsRemote(l.req.GetType()) && res.GetState() == v1.AttemptMoved {
		l.warn(l.Suspend(ctx))
		return
	}
	if err := l.close(ctx); err != nil && res.GetResult() != nil {
		res.Result.Warning = strings.TrimPrefix(res.Result.Warning+"; "+err.Error(), "; ")
	}
}

// close stores the rest of the log. It returns an error if the log lacks output.
func (l *taskLog) close(ctx context.Context) error {
	err := l.Close(ctx)
	l.warn(err)
	return err
}

// warn logs that a part of the log was not stored, if err is set.
func (l *taskLog) warn(err error) {
	if err != nil {
		l.logger.Warn("a part of a log was not stored", "run", l.req.GetRunId(), "task", l.req.GetTask(), "attempt", l.req.GetAttempt(), "error", err)
	}
}

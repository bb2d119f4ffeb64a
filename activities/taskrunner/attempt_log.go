package taskrunner

import (
	"context"

	"switchyard/activities/logs"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// logOf returns the name of the log of a member's dispatch.
func (w *work) logOf(m *member) logs.Attempt {
	req := w.attempt.req
	return logs.Attempt{
		Run: names.Home(req.GetRunId(), req.GetChain()), Generation: req.GetGeneration(), Task: m.name, Attempt: m.attempt, Claim: m.claim,
	}
}

// openLog begins the log of an attempt, or resumes the log of an earlier dispatch of a remote attempt. The error is that
// of ctx.
func (w *work) openLog(ctx context.Context, m *member) error {
	if w.attempt.isRemote() && w.attempt.req.GetContinues() {
		return w.resumeLog(ctx)
	}
	w.log = logs.NewWriter(w.node.Store, w.logOf(m), w.logOptions())
	return nil
}

// closeOrSuspendLog closes the log of an attempt. It suspends the log if another worker continues the attempt.
func (w *work) closeOrSuspendLog(ctx context.Context, res *v1.ExecuteResponse) {
	if !w.attempt.isLeft && (!w.attempt.isRemote() || res.GetState() != v1.AttemptMoved) {
		w.closeLog(ctx)
		return
	}
	if err := w.log.Suspend(ctx); err != nil {
		w.node.Logger.Warn("a part of a log was not stored", "run", w.attempt.req.GetRunId(), "task", w.attempt.req.GetTask(), "error", err)
	}
}

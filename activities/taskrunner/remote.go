package taskrunner

import (
	"context"
	"errors"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// An attempt of a remote type runs outside the node, and another node can continue it:
//
//	lease lost, activity gone, drain, node stops ──▶ let go: the answer is "moved", and the attempt continues elsewhere
//	cancelled, killed, out of time ────────────────▶ stopped like any other attempt
//
// An end that the executor reports counts even if the lease has been lost: the claim that the executor keeps next to the
// attempt fences it.

const (
	// recordedPatience bounds how long the node waits until the server has the answer of a remote attempt.
	recordedPatience = 30 * time.Second
	// recordedTimeout bounds one call of Recorded.
	recordedTimeout = 30 * time.Second
)

// isRemote reports whether the attempt runs outside the node.
func (a *attempt) isRemote() bool { return v1.IsRemote(a.req.GetType()) }

// letsGo reports whether another node is to continue a remote attempt that ends for a cause.
func letsGo(cause error) bool {
	_, drains := errors.AsType[drained](cause)
	return drains || cause == errLeaseLost || cause == errNotStarted || cause == heartbeat.ErrGone
}

// remoteContext returns the context for Run of a remote attempt. It ends when ctx ends. Its cause is executor.ErrLetGo if
// another node is to continue the attempt. The caller must call cancel.
func remoteContext(ctx context.Context) (_ context.Context, cancel func()) {
	own, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if letsGo(cause) {
			cause = letGo{cause}
		}
		stop(cause)
	})
	return own, func() {
		unlink()
		stop(nil)
	}
}

// doRemote runs a remote attempt in place of the second half of work.do.
func (w *work) doRemote(ctx context.Context, m *member, x executor.Attempt) (*historyv1.ExecuteResponse, error) {
	w.addRemote(&x)
	runCtx, cancel := remoteContext(ctx)
	defer cancel()
	result, err := w.run(runCtx, x, w.spawned)
	w.attempt.steering.end()
	w.attempt.progress.showWait("")
	res, err := interpretRemote(ctx, result, err)
	if err == nil && res.GetState() != v1.AttemptMoved {
		w.recorded = func() { w.tellRecorded(context.WithoutCancel(ctx), x) }
	}
	return w.collect(ctx, ctx, m, result, res, err)
}

// addRemote sets the fields of an attempt that only a remote executor reads.
func (w *work) addRemote(x *executor.Attempt) {
	a := w.attempt
	x.Waits = a.progress.showWait
	x.Remote = executor.Remote{
		Continues: a.req.GetContinues(), Timeout: a.req.GetTimeout().AsDuration(), Resources: a.req.GetResources(),
		LogPosition: w.log.Position(), MarkLog: w.log.Mark,
	}
	// A cluster may take any time to start the attempt.
	a.beats.removeStartDeadline()
}

// interpretRemote translates the end of Run of a remote attempt, as interpret does for other attempts.
func interpretRemote(ctx context.Context, r executor.Result, err error) (*historyv1.ExecuteResponse, error) {
	cause := context.Cause(ctx)
	switch {
	case r.Released != "":
		return moved(v1.ReasonLeaseLost, r.Released), nil
	case (r.Stopped || err != nil) && cause == heartbeat.ErrGone:
		return moved(v1.ReasonLeaseLost, cause.Error()), nil
	case err != nil && letsGo(cause):
		return stopped(ctx, nil), nil
	}
	return interpret(ctx, r, err)
}

// tellRecorded tells the executor of a remote attempt that the server has its answer, once that is so. Until then another
// node may have to read the answer from what is left of the attempt.
func (w *work) tellRecorded(ctx context.Context, x executor.Attempt) {
	n, a := w.node, w.attempt
	recorded := n.capabilities(a.req.GetType()).Recorded
	if recorded == nil {
		return
	}
	n.attempts.recording.Go(func() {
		if !a.awaitTaken(ctx) {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, recordedTimeout)
		defer cancel()
		if err := recorded(ctx, x); err != nil {
			n.Logger.Warn("what is left of an attempt outside of the node was not removed", "attempt", x.ID, "error", err)
		}
	})
}

// awaitTaken waits until the server has the answer of an attempt that its activity is returning. It returns false if the
// server may not have the answer.
func (a *attempt) awaitTaken(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, recordedPatience)
	defer cancel()
	await(ctx, a.attendance.fetched)
	for ctx.Err() == nil {
		of, _ := a.attendance.sender()
		sent := executor.Now()
		switch heartbeat.Send(ctx, a.node.Client, a.beats.terms.answer, of.token, a.progress.Load()) {
		case heartbeat.ErrGone:
			return !a.beats.lease.Lost()
		case nil, heartbeat.ErrCancelled:
			a.beats.lease.Renew(sent)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(a.beats.terms.again, 100*time.Millisecond)):
		}
	}
	return false
}

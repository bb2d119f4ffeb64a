package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// reattach turns what an earlier worker has left into an attempt of this worker, and answers the activity when the
// attempt ends. sent is when the newest heartbeat was sent, or 0 if the activity has left the attempt.
func (r *recovery) reattach(l *orphan, exec executor.Survivor, ws *workspace.Workspace, t terms, progress *historyv1.ExecuteProgress, sent executor.Instant, decided func()) {
	n := r.node
	d := l.delivery()
	a := n.newAttemptWith(d, l.req, l.recoveryFile)
	a.beats.terms, a.takenUpAt = t, stampOf(l.state.TakenUpAt)
	a.members[0].checkpoint = nil // what the attempt has left is read again
	a.progress.Store(progress)
	a.run = func(ctx context.Context) (*historyv1.ExecuteResponse, error) { return r.await(ctx, a, l, exec, ws) }
	begin := sent
	stop, kill := l.ends()
	if sent == 0 {
		alone := time.Until(l.state.AloneUntil)
		begin = a.attendance.beginUnattended(alone).Add(alone - kill)
	} else {
		a.recoveryFile.recordHeartbeat(sent)
	}
	if l.state.Lasting {
		begin = executor.Now()
	}
	if !l.state.StartedAt.IsZero() {
		a.beats.workFrom(l.state.StartedAt)
	}
	a.beats.lease.Replace(begin, stop, kill)
	if sent != 0 {
		a.attendance.resume(l.state.inUse(), l.lastBeat(), sent)
	}
	a.beats.growth = growth{activity: 1, base: l.state.Heartbeat, limit: a.beats.growth.limit, inForce: l.state.inUse(), inUse: l.state.inUse()}
	if l.state.Lasting {
		a.lasting.begun.Store(a.beats.lease.Lift())
	}
	own := n.begin(context.WithoutCancel(r.ctx), a, d.stopping)
	n.attempts.start(a)
	decided()
	if sent == 0 {
		a.runToEnd(own)
		return
	}
	r.work.Go(func() { a.runToEnd(own) })
	res, err := a.awaitEnd(context.WithoutCancel(r.ctx), a.attendance.first)
	r.complete(a, l.state.Token, res, err)
}

// await waits for the end of a reattached attempt.
func (r *recovery) await(ctx context.Context, a *attempt, l *orphan, exec executor.Survivor, ws *workspace.Workspace) (*historyv1.ExecuteResponse, error) {
	n, f := r.node, r.finds[l.req.GetType()]
	select {
	case <-f.done:
	case <-ctx.Done():
		if a.isLetGo(context.Cause(ctx)) {
			l.release()
			return nil, errLetGo
		}
		// Nothing can be ended until the executor answers.
		r.discard(l, exec, ws)
		return stopped(ctx, nil), nil
	}
	w := &work{node: n, attempt: a, ws: ws, spec: l.spec, gpus: n.grantedGPUs(a.req), started: l.state.StartedAt, suspended: !l.state.SuspendedAt.IsZero()}
	defer l.release()
	defer w.close()
	defer a.recoveryFile.remove()
	found, ok := f.byID[l.state.ID]
	switch {
	case ok && found.StartedAt.IsZero():
		r.remove(exec, found)
		fallthrough
	case !ok && l.state.StartedAt.IsZero():
		return moved(v1.ReasonIncarnation, fmt.Sprintf("node %s was started again before the task was", n.Name)), nil
	case !ok && !r.endLeftover(a):
		return nil, errLetGo // its lease ends with the heartbeats
	case !ok:
		return a.lostAnswer(ctx)
	}
	if w.started.IsZero() {
		w.started = found.StartedAt
		a.spawned(found.StartedAt)
	}
	w.since = w.started.Add(l.state.stoodStill())
	w.run = func(ctx context.Context, attempt executor.Attempt, _ func()) (executor.Result, error) {
		return exec.Reattach(ctx, attempt)
	}
	if w.secrets, ok = recoverSecrets(l.req, found); !ok {
		r.remove(exec, found)
		text := fmt.Sprintf("node %s was started again, and cannot tell which secrets the task has", n.Name)
		if a.isLasting() { // it cannot be placed again
			return &historyv1.ExecuteResponse{State: v1.TaskLost, Reason: v1.ReasonNodeLost, Error: text}, nil
		}
		return moved(v1.ReasonIncarnation, text), nil
	}
	w.log = w.newLog()
	w.log.options.Held = found.Held
	if err := w.log.resume(ctx, &a.members[0]); err != nil {
		if a.isLetGo(err) {
			w.leave()
			return nil, errLetGo
		}
		r.remove(exec, found)
		return stopped(ctx, nil), nil
	}
	if found.Running {
		n.Logger.Info("an attempt of an earlier worker continues", "attempt", l.state.ID)
	}
	res, err := w.finish(ctx, &a.members[0])
	if errors.Is(err, executor.ErrNotRunning) {
		return a.lostAnswer(ctx)
	}
	return res, err
}

// lostAnswer returns the answer of an attempt of an earlier worker that has left nothing but its checkpoint, with that
// checkpoint and the start of the program.
func (a *attempt) lostAnswer(ctx context.Context) (*historyv1.ExecuteResponse, error) {
	res, err := a.node.lostAnswer(ctx, a.delivery.heartbeat, a.req)
	if res.GetState() == v1.TaskLost {
		res.Checkpoint = a.progress.Load().GetCheckpoint()
		if len(a.req.GetBatch()) == 0 {
			res.StartedAt = a.progress.Load().GetStartedAt()
		}
	}
	return res, err
}

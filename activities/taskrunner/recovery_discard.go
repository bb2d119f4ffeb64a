package taskrunner

import (
	"context"
	"errors"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// discard ends an unwanted attempt once its executor answers. If the attempt had completed by itself before, its result
// is recorded and need not be computed again. ws is nil if the workspace is lost or in use.
func (r *recovery) discard(l *orphan, exec executor.Survivor, ws *workspace.Workspace) {
	n, f := r.node, r.finds[l.req.GetType()]
	r.work.Go(func() {
		defer l.release()
		select {
		case <-f.done:
		case <-r.ctx.Done():
			return // a later worker finds it
		}
		a := n.newAttemptWith(l.delivery(), l.req, l.recoveryFile)
		a.beats.lease = nil
		a.progress.Store(&historyv1.ExecuteProgress{Spawned: true, StartedAt: stampOf(l.state.StartedAt)})
		w := &work{node: n, attempt: a, ws: ws, spec: l.spec, started: l.state.StartedAt}
		defer w.close()
		defer a.recoveryFile.remove()
		found, ok := f.byID[l.state.ID]
		if !ok {
			r.endLeftover(a)
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, cleanupTimeout)
		defer cancel()
		if w.secrets, ok = recoverSecrets(l.req, found); !ok {
			r.remove(exec, found)
			return
		}
		w.log = w.newLog()
		w.log.options.Held = found.Held
		if w.log.resume(ctx, &a.members[0]) != nil {
			r.remove(exec, found)
			return
		}
		if found.Running || found.StartedAt.IsZero() || ws == nil {
			r.remove(exec, found)
			w.log.Notice("ended after its worker had died, because it was no longer wanted")
			_ = w.log.close(ctx) // logged
			return
		}
		w.run = func(ctx context.Context, attempt executor.Attempt, _ func()) (executor.Result, error) {
			return exec.Reattach(ctx, attempt)
		}
		if _, err := w.finish(ctx, &a.members[0]); err != nil && !errors.Is(err, executor.ErrNotRunning) {
			n.Logger.Warn("the end of an attempt is not known", "attempt", l.state.ID, "error", err)
			r.remove(exec, found)
		}
	})
}

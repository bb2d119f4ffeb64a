package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/heartbeat"
	"switchyard/activities/logs"
	v1 "switchyard/proto/switchyard/v1"
)

// A worker decides what becomes of each attempt that an earlier worker left. It sends a heartbeat with the token in the
// attempt's recovery file, and the server's reply decides:
//
//	recovery file ──┬─ the server wants it ──▶ it enters the ledger and is an attempt like any other
//	                ├─ it does not ──────────▶ ended; recorded if it had completed by itself; a lasting attempt
//	                │                          continues, unattended, if its run waits for it or while
//	                │                          that is unknown
//	                └─ no answer ────────────▶ retried until its lease is over, then ended
//	no recovery file ────────────────────────▶ ended
//
// None of this waits for the engine: the heartbeats of a wanted attempt continue while the engine is away.

const (
	// recoverPatience bounds how long the start of a node waits for an answer of the server or of an executor. The
	// questions continue in the background.
	recoverPatience = 3 * time.Second
	// recoverPause is the time between two queries of an executor that has not answered.
	recoverPause = time.Second
	// survivorsTimeout bounds one such query, and the work to end one survivor.
	survivorsTimeout = 10 * time.Second
	// reattachedBeat is the longest time between two heartbeats of a reattached attempt. It is short because the server's
	// pushes go to the worker that originally accepted the attempt.
	reattachedBeat = time.Second
	// completeTimeout bounds one call that reports an answer to the server.
	completeTimeout = 5 * time.Second
)

// recovery handles the attempts that earlier workers of a node have left.
type recovery struct {
	node *Node
	ctx  context.Context // ends when the node stops
	// finds holds the attempts that each executor has found, by task type.
	finds map[string]*finds
	left  []*orphan // the attempts with a recovery file
	// undecided has a channel for each lasting attempt. The channel is closed once the fate of the attempt is settled.
	undecided map[attemptKey]chan struct{}
	work      sync.WaitGroup
}

// finds holds the attempts that an executor has found.
type finds struct {
	exec executor.Survivor
	done chan struct{} // closed when byID is set
	byID map[string]executor.Leftover
}

// Recover continues the attempts that earlier workers of the node have left, if their executors are Survivors. The node
// must be the only one with its name. When Recover returns, every attempt that may be wanted has its place. No executor
// starts anything before it has reported its leftovers. end stops the searches still in progress. It returns when
// everything due has been reported to the server, or when its context ends.
func (n *Node) Recover(ctx context.Context) (end func(context.Context)) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &recovery{node: n, ctx: own, finds: map[string]*finds{}, undecided: map[attemptKey]chan struct{}{}}
	end = func(ctx context.Context) {
		cancel()
		idle := make(chan struct{})
		go func() { r.work.Wait(); close(idle) }()
		await(ctx, idle)
	}
	if n.State.Dir == "" {
		return end
	}
	left, err := n.State.orphans(n.Logger)
	if err != nil {
		n.Logger.Warn("attempts that an earlier worker has left are not gone on with", "error", err)
	}
	r.left = left
	for _, l := range left {
		if l.state.Lasting {
			r.undecided[keyOf(l.req, membersOf(l.req))] = make(chan struct{})
		}
	}
	n.recovery.Store(r)
	r.answerClaims()
	var workspaces []string
	for _, l := range left {
		workspaces = append(workspaces, l.state.Workspace)
	}
	if err := n.State.workspaces().Sweep(workspaces); err != nil {
		n.Logger.Warn("a private directory that an earlier worker has left was not removed", "error", err)
	}
	for taskType := range n.Executors {
		if s := n.survivor(taskType); s != nil {
			r.finds[taskType] = &finds{exec: s, done: make(chan struct{})}
		}
	}
	patience, stop := context.WithTimeout(ctx, recoverPatience)
	defer stop()
	var asked sync.WaitGroup
	for _, l := range left {
		decided := r.undecided[keyOf(l.req, membersOf(l.req))]
		if decided == nil {
			decided = make(chan struct{})
		}
		release, err := n.Room.Restore(l.req)
		if err != nil {
			n.Logger.Warn("an attempt that an earlier worker has left has no place", "attempt", l.state.ID, "error", err)
			release = func() {}
		}
		l.release = release
		r.work.Go(func() { r.decide(l, sync.OnceFunc(func() { close(decided) })) })
		asked.Go(func() { await(patience, decided) })
	}
	for _, taskType := range slices.Sorted(maps.Keys(r.finds)) {
		f, answered := r.finds[taskType], make(chan struct{})
		r.work.Go(func() { r.scan(taskType, f, sync.OnceFunc(func() { close(answered) })) })
		asked.Go(func() { await(patience, answered) })
	}
	asked.Wait()
	return end
}

// isSearching reports whether an executor has not yet reported what is left of earlier attempts.
// A nil recovery has nothing to look for.
func (r *recovery) isSearching(taskType string) bool {
	if r == nil || r.finds[taskType] == nil {
		return false
	}
	select {
	case <-r.finds[taskType].done:
		return false
	default:
		return true
	}
}

// scan asks an executor for its leftovers until it answers, and ends those without a recovery file. answered is called
// after the first reply or error.
func (r *recovery) scan(taskType string, f *finds, answered func()) {
	n := r.node
	level := slog.LevelDebug // the machine may not have this executor at all
	if r.expects(taskType) {
		level = slog.LevelWarn
	}
	var found []executor.Leftover
	for quiet := false; ; quiet = true {
		ctx, cancel := context.WithTimeout(r.ctx, survivorsTimeout)
		var err error
		found, err = f.exec.Survivors(ctx, n.Name)
		cancel()
		if err == nil {
			break
		}
		answered()
		if !quiet {
			n.Logger.Log(r.ctx, level, "it is not known yet what an earlier worker has left", "type", taskType, "error", err)
		}
		if !r.pause(recoverPause) {
			return
		}
	}
	f.byID = map[string]executor.Leftover{}
	var unknown []executor.Leftover
	for _, l := range found {
		switch {
		case l.Identity.Fleet != n.Fleet:
			// It belongs to another node with this name.
		case r.knows(l.ID):
			f.byID[l.ID] = l
		default:
			unknown = append(unknown, l)
		}
	}
	close(f.done)
	answered()
	for _, l := range unknown {
		n.Logger.Info("an attempt of an earlier worker without a recovery file is ended", "attempt", l.ID)
		r.remove(f.exec, l)
	}
}

// expects reports whether an earlier worker has left attempts of a type.
func (r *recovery) expects(taskType string) bool {
	return slices.ContainsFunc(r.left, func(l *orphan) bool { return l.req.GetType() == taskType })
}

// knows reports whether an attempt has a recovery file.
func (r *recovery) knows(id string) bool {
	return slices.ContainsFunc(r.left, func(l *orphan) bool { return l.state.ID == id })
}

// pause waits for d. It returns false if the node stops.
func (r *recovery) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}

// decide asks the server whether it wants an attempt, and continues or ends the attempt accordingly.
func (r *recovery) decide(l *orphan, decided func()) {
	defer decided()
	n := r.node
	exec := n.survivor(l.req.GetType())
	if exec == nil { // this worker was started without the executor
		if l.state.Lasting { // a later worker may have it
			<-r.ctx.Done()
		}
		l.release()
		return
	}
	members := membersOf(l.req)
	ws, err := n.State.workspaces().Open(l.state.Workspace, l.state.TempDir)
	if err != nil {
		n.Logger.Warn("an attempt that an earlier worker has left has lost its directory", "attempt", l.state.ID, "error", err)
		r.discard(l, exec, nil)
		return
	}
	progress := &v1.ExecuteProgress{
		Claim: l.req.GetClaim(), Spawned: !l.state.StartedAt.IsZero(), StartedAt: stampOf(l.state.StartedAt), Checkpoint: l.checkpoint(ws, &members[0]),
		SshPublicKey: loginKeys(l.req, l.spec),
	}
	t := termsOf(l.state.Heartbeat, min(cmp.Or(n.Timing.BeatInterval, reattachedBeat), reattachedBeat))
	lease := executor.NewLease(executor.Now().Add(-max(time.Since(l.beatAt), 0)), t.stop, t.kill)
	for {
		sent := executor.Now()
		switch err := heartbeat.Send(r.ctx, n.Client, t.answer, l.state.Token, progress); {
		case err == nil, err == heartbeat.ErrCancelled:
			r.reattach(l, exec, ws, t, progress, sent, decided)
			return
		case err == heartbeat.ErrGone && time.Now().Before(l.state.AloneUntil):
			// The activity has left the attempt, and another one is on its way.
			r.reattach(l, exec, ws, t, progress, 0, decided)
			return
		case err == heartbeat.ErrGone && l.state.Lasting:
			wanted, err := n.isWanted(r.ctx, l.identity(n))
			if err != nil {
				break
			}
			if wanted {
				r.reattach(l, exec, ws, t, progress, 0, decided)
				return
			}
			n.Logger.Info("what an earlier worker has left is ended: its run does not wait for it any more", "attempt", l.state.ID)
			r.discard(l, exec, ws)
			return
		case !l.state.Lasting && (err == heartbeat.ErrGone || lease.Lost()):
			n.Logger.Info("what an earlier worker has left is ended: it is not wanted any more", "attempt", l.state.ID)
			r.discard(l, exec, ws)
			return
		}
		if !r.pause(t.again) {
			l.release()
			return
		}
	}
}

// stampOf returns the timestamp of t, or nil for the zero time.
func stampOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// reattach turns what an earlier worker has left into an attempt of this worker, and answers the activity when the
// attempt ends. sent is when the newest heartbeat was sent, or 0 if the activity has left the attempt.
func (r *recovery) reattach(l *orphan, exec executor.Survivor, ws *workspace.Workspace, t terms, progress *v1.ExecuteProgress, sent executor.Instant, decided func()) {
	n := r.node
	d := delivery{token: l.state.Token, queue: l.state.Queue, heartbeat: l.state.Heartbeat}
	a := n.newAttempt(d, l.req)
	left := a.first
	a.terms, a.takenUpAt, a.recoveryFile = t, stampOf(l.state.TakenUpAt), l.recoveryFile
	a.members[0].checkpoint = nil // what the attempt has left is read again
	a.progress.Store(progress)
	a.run = func(ctx context.Context) (*v1.ExecuteResponse, error) { return r.await(ctx, a, l, exec, ws) }
	begin := sent
	if sent == 0 {
		a.left, a.released = nil, true
		a.leftAt, a.alone = executor.Now(), time.Until(l.state.AloneUntil)
		begin = a.leftAt.Add(a.alone - t.kill)
	} else {
		a.recordHeartbeat(sent)
	}
	if l.state.Lasting {
		begin = executor.Now()
	}
	a.lease = executor.NewLease(begin, t.stop, t.kill)
	if l.state.Lasting {
		a.lasting.Store(a.lease.Lift())
	}
	own := n.begin(context.WithoutCancel(r.ctx), a, d.stopping)
	n.attempts.start(a)
	n.Logger.Info("an attempt that an earlier worker has left is gone on with", "attempt", l.state.ID)
	decided()
	if sent == 0 {
		a.runToEnd(own)
		return
	}
	r.work.Go(func() { a.runToEnd(own) })
	res, err := a.awaitEnd(context.WithoutCancel(r.ctx), left)
	r.complete(a, l.state.Token, res, err)
}

// await waits for the end of a reattached attempt.
func (r *recovery) await(ctx context.Context, a *attempt, l *orphan, exec executor.Survivor, ws *workspace.Workspace) (*v1.ExecuteResponse, error) {
	n, f := r.node, r.finds[l.req.GetType()]
	select {
	case <-f.done:
	case <-ctx.Done():
		if _, stops := errors.AsType[drained](context.Cause(ctx)); stops && a.isLasting() {
			l.release()
			return nil, errLetGo
		}
		// Nothing can be ended until the executor answers.
		r.discard(l, exec, ws)
		return stopped(ctx, nil), nil
	}
	w := &work{node: n, attempt: a, ws: ws, spec: l.spec, gpus: grantedGPUs(a.req, n.HasGPUs), started: l.state.StartedAt, suspended: !l.state.SuspendedAt.IsZero()}
	defer l.release()
	defer w.close()
	defer a.removeRecoveryFile()
	found, ok := f.byID[l.state.ID]
	switch {
	case ok && found.StartedAt.IsZero():
		r.remove(exec, found)
		fallthrough
	case !ok && l.state.StartedAt.IsZero():
		return moved(v1.ReasonIncarnation, fmt.Sprintf("node %s was started again before the task was", n.Name)), nil
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
			return &v1.ExecuteResponse{State: v1.TaskLost, Reason: v1.ReasonNodeLost, Error: text}, nil
		}
		return moved(v1.ReasonIncarnation, text), nil
	}
	if err := w.resumeLog(ctx); err != nil {
		if _, stops := errors.AsType[drained](err); stops && a.isLasting() {
			w.leave()
			return nil, errLetGo
		}
		r.remove(exec, found)
		return stopped(ctx, nil), nil
	}
	res, err := w.finish(ctx, &a.members[0])
	if errors.Is(err, executor.ErrNotRunning) {
		return a.lostAnswer(ctx)
	}
	return res, err
}

// lostAnswer returns the answer of a reattached attempt that has left nothing but its checkpoint, with that checkpoint.
func (a *attempt) lostAnswer(ctx context.Context) (*v1.ExecuteResponse, error) {
	res, err := a.node.lostAnswer(ctx, a.heartbeat, a.req)
	if res.GetState() == v1.TaskLost {
		res.Checkpoint = a.progress.Load().GetCheckpoint()
	}
	return res, err
}

// resumeLog continues the log that an earlier worker has written. The error is that of ctx.
func (w *work) resumeLog(ctx context.Context) error {
	m := &w.attempt.members[0]
	for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
		var err error
		of := w.logOf(m)
		if w.attempt.isRemote() {
			of, err = logs.Shared(ctx, w.node.Store, of)
		}
		if err == nil {
			w.log, err = logs.Resume(ctx, w.node.Store, of, w.logOptions())
		}
		if err == nil {
			return nil
		}
		w.node.Logger.Debug("a log could not be read", "run", w.attempt.req.GetRunId(), "task", m.name, "error", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// complete answers the activity of a reattached attempt, as the end of Execute would. It tries until the server has the
// answer, or until the server has given the task to another node.
func (r *recovery) complete(a *attempt, token []byte, res *v1.ExecuteResponse, failure error) {
	if failure == errLetGo {
		return
	}
	res, failure = activityEnd(res, failure)
	var result any
	if failure == nil {
		result = res
	}
	for until := executor.Now().Add(cmp.Or(a.heartbeat, defaultHeartbeatTimeout)); ; {
		ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
		err := r.node.Client.CompleteActivity(ctx, token, result, failure)
		cancel()
		if _, gone := errors.AsType[*serviceerror.NotFound](err); err == nil || gone {
			return
		}
		if executor.Now() >= until {
			r.node.Logger.Warn("the end of an attempt was not reported to the server", "run", a.req.GetRunId(), "task", a.members[0].name, "error", err)
			return
		}
		time.Sleep(a.terms.again)
	}
}

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
		a := n.newAttempt(delivery{token: l.state.Token, queue: l.state.Queue, heartbeat: l.state.Heartbeat}, l.req)
		a.recoveryFile, a.lease = l.recoveryFile, nil
		a.progress.Store(&v1.ExecuteProgress{Spawned: true, StartedAt: stampOf(l.state.StartedAt)})
		w := &work{node: n, attempt: a, ws: ws, spec: l.spec, started: l.state.StartedAt}
		defer w.close()
		defer a.removeRecoveryFile()
		found, ok := f.byID[l.state.ID]
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, cleanupTimeout)
		defer cancel()
		if w.secrets, ok = recoverSecrets(l.req, found); !ok || w.resumeLog(ctx) != nil {
			r.remove(exec, found)
			return
		}
		if found.Running || found.StartedAt.IsZero() || ws == nil {
			r.remove(exec, found)
			w.log.Notice("ended after its worker had died: it was not wanted any more")
			w.closeLog(ctx)
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

// remove ends what is left of an attempt. It retries until that succeeds or the node stops.
func (r *recovery) remove(exec executor.Survivor, l executor.Leftover) {
	for quiet := false; ; quiet = true {
		ctx, cancel := context.WithTimeout(r.ctx, survivorsTimeout)
		err := exec.Remove(ctx, l)
		cancel()
		if err == nil {
			return
		}
		if !quiet {
			r.node.Logger.Warn("what an earlier worker has left could not be ended yet", "attempt", l.ID, "error", err)
		}
		if !r.pause(recoverPause) {
			return
		}
	}
}

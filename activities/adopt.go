package activities

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
	"switchyard/activities/logs"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// What a worker finds of attempts that an earlier one has left, it decides by an
// acknowledged heartbeat with the token that it finds in the keepsake:
//
//	keepsake ─┬─ the server wants it ──▶ it is on the ledger, and an attempt as any other
//	          ├─ it does not ──────────▶ ended; recorded, if it had completed by itself
//	          └─ no answer ────────────▶ asked again until its lease is over, then ended
//	no keepsake ───────────────────────▶ ended
//
// None of this waits for the engine: the heartbeats of an attempt that is wanted go on
// while it is away.

const (
	// recoverPatience bounds how long the start of a node waits for an answer of the
	// server or of an executor. Both are asked on.
	recoverPatience = 3 * time.Second
	// recoverPause is the time between two questions to an executor that has not answered.
	recoverPause = time.Second
	// survivorsTimeout bounds one such question, and what is done to end one survivor.
	survivorsTimeout = 10 * time.Second
	// adoptedBeat is the longest time between two beats of an adopted attempt: what the
	// server pushes goes to the worker that has taken it up.
	adoptedBeat = time.Second
	// completeTimeout bounds one answer to the server.
	completeTimeout = 5 * time.Second
)

// recovery is what a node does about the attempts that earlier workers have left.
type recovery struct {
	node *Node
	ctx  context.Context // ends when the node stops
	// finds are those of each executor, by task type.
	finds map[string]*finds
	left  []*legacy // what has a keepsake
	work  sync.WaitGroup
}

// finds are the attempts that an executor has found.
type finds struct {
	exec executor.Survivor
	done chan struct{} // closed when byID is set
	byID map[string]executor.Leftover
}

// Recover goes on with the attempts that earlier workers of the node have left, where the
// executors are Survivors. The node is the only one of its name. When it returns, what
// may be wanted has its place, and no executor is asked to start anything before it has
// said what is left of it. end gives up what is still being looked for, and returns when
// what had to be told to the server has been, or when its context ends.
func (n *Node) Recover(ctx context.Context) (end func(context.Context)) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &recovery{node: n, ctx: own, finds: map[string]*finds{}}
	end = func(ctx context.Context) {
		cancel()
		idle := make(chan struct{})
		go func() { r.work.Wait(); close(idle) }()
		await(ctx, idle)
	}
	if n.StateDir == "" {
		return end
	}
	n.recovery.Store(r)
	left, err := n.legacies()
	if err != nil {
		n.Logger.Warn("attempts that an earlier worker has left are not gone on with", "error", err)
	}
	r.left = left
	r.answerClaims()
	var workspaces []string
	for _, l := range left {
		workspaces = append(workspaces, l.kept.Workspace)
	}
	if err := n.lasting().Sweep(workspaces); err != nil {
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
		decided := make(chan struct{})
		release, err := n.Room.Restore(l.req)
		if err != nil {
			n.Logger.Warn("an attempt that an earlier worker has left has no place", "attempt", l.kept.ID, "error", err)
			release = func() {}
		}
		l.release = release
		r.work.Go(func() { r.decide(l, sync.OnceFunc(func() { close(decided) })) })
		asked.Go(func() { await(patience, decided) })
	}
	for _, taskType := range slices.Sorted(maps.Keys(r.finds)) {
		f, answered := r.finds[taskType], make(chan struct{})
		r.work.Go(func() { r.look(taskType, f, sync.OnceFunc(func() { close(answered) })) })
		asked.Go(func() { await(patience, answered) })
	}
	asked.Wait()
	return end
}

// recovering reports whether an executor has not yet said what is left of earlier attempts.
func (n *Node) recovering(taskType string) bool {
	r := n.recovery.Load()
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

// look asks an executor what it has, until it says so, and ends what nobody knows of.
// answered is called after the first time.
func (r *recovery) look(taskType string, f *finds, answered func()) {
	n := r.node
	level := slog.LevelDebug // it may be one that this machine does not have
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
			// It is that of another node of this name.
		case r.knows(l.ID):
			f.byID[l.ID] = l
		default:
			unknown = append(unknown, l)
		}
	}
	close(f.done)
	answered()
	for _, l := range unknown {
		n.Logger.Info("what an earlier worker has left is ended: nobody knows what it is for", "attempt", l.ID)
		r.remove(f.exec, l)
	}
}

// expects reports whether an earlier worker has left attempts of a type.
func (r *recovery) expects(taskType string) bool {
	return slices.ContainsFunc(r.left, func(l *legacy) bool { return l.req.GetType() == taskType })
}

// knows reports whether an attempt has a keepsake.
func (r *recovery) knows(id string) bool {
	return slices.ContainsFunc(r.left, func(l *legacy) bool { return l.kept.ID == id })
}

// pause waits; false: the node stops.
func (r *recovery) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}

// decide asks the server whether it wants an attempt, and does what follows from that.
func (r *recovery) decide(l *legacy, decided func()) {
	defer decided()
	n := r.node
	exec := n.survivor(l.req.GetType())
	if exec == nil { // this worker was started without the executor
		l.release()
		return
	}
	members := membersOf(l.req)
	ws, err := n.lasting().Open(l.kept.Workspace, l.kept.TempDir)
	if err != nil {
		n.Logger.Warn("an attempt that an earlier worker has left has lost its directory", "attempt", l.kept.ID, "error", err)
		r.discard(l, exec, nil)
		return
	}
	progress := &v1.ExecuteProgress{
		Claim: l.req.GetClaim(), Spawned: !l.kept.StartedAt.IsZero(), StartedAt: stampOf(l.kept.StartedAt), Checkpoint: l.checkpoint(ws, &members[0]),
	}
	t := termsOf(l.kept.Heartbeat, min(cmp.Or(n.BeatInterval, adoptedBeat), adoptedBeat))
	lease := executor.NewLease(executor.Now().Add(-max(time.Since(l.beatAt), 0)), t.stop, t.kill)
	for {
		sent := executor.Now()
		switch err := n.acknowledge(r.ctx, t.answer, l.kept.Token, progress); {
		case err == nil, err == errCancelled:
			r.adopt(l, exec, ws, t, progress, sent, decided)
			return
		case err == errGone && time.Now().Before(l.kept.AloneUntil):
			// The activity has left it, and another one is on its way.
			r.adopt(l, exec, ws, t, progress, 0, decided)
			return
		case err == errGone || lease.Lost():
			n.Logger.Info("what an earlier worker has left is ended: it is not wanted any more", "attempt", l.kept.ID)
			r.discard(l, exec, ws)
			return
		}
		if !r.pause(t.again) {
			l.release()
			return
		}
	}
}

// stampOf is nil for the zero time.
func stampOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// adopt makes what an earlier worker has left an attempt of this one, whose newest beat
// was sent at an instant, or which has been left by its activity (0), and answers the
// activity when it is over.
func (r *recovery) adopt(l *legacy, exec executor.Survivor, ws *workspace.Workspace, t terms, progress *v1.ExecuteProgress, sent executor.Instant, decided func()) {
	n := r.node
	d := delivery{token: l.kept.Token, queue: l.kept.Queue, heartbeat: l.kept.Heartbeat}
	a := n.newAttempt(d, l.req)
	left := a.first
	a.terms, a.takenUpAt, a.keepsake = t, stampOf(l.kept.TakenUpAt), l.keepsake
	a.members[0].checkpoint = nil // what it has left is read anew
	a.progress.Store(progress)
	a.carry = func(ctx context.Context) (*v1.ExecuteResponse, error) { return r.carry(ctx, a, l, exec, ws) }
	begin := sent
	if sent == 0 {
		a.left, a.released = nil, true
		a.leftAt, a.alone = executor.Now(), time.Until(l.kept.AloneUntil)
		begin = a.leftAt.Add(a.alone - t.kill)
	} else {
		a.keptBeat(sent)
	}
	a.lease = executor.NewLease(begin, t.stop, t.kill)
	own := n.begin(context.WithoutCancel(r.ctx), a, d.stopping)
	n.attempts.start(a)
	n.Logger.Info("an attempt that an earlier worker has left is gone on with", "attempt", l.kept.ID)
	decided()
	if sent == 0 {
		a.through(own)
		return
	}
	r.work.Go(func() { a.through(own) })
	res, err := a.attend(context.WithoutCancel(r.ctx), left)
	n.complete(a, l.kept.Token, res, err)
}

// carry brings an adopted attempt to its end.
func (r *recovery) carry(ctx context.Context, a *attempt, l *legacy, exec executor.Survivor, ws *workspace.Workspace) (*v1.ExecuteResponse, error) {
	n, f := r.node, r.finds[l.req.GetType()]
	select {
	case <-f.done:
	case <-ctx.Done():
		// Nothing can be ended without the executor.
		r.discard(l, exec, ws)
		return stopped(ctx, nil), nil
	}
	w := &work{node: n, attempt: a, ws: ws, spec: l.spec, gpus: n.gpus(a), started: l.kept.StartedAt, suspended: !l.kept.SuspendedAt.IsZero()}
	defer l.release()
	defer w.close()
	defer a.dropKeepsake()
	found, ok := f.byID[l.kept.ID]
	switch {
	case ok && found.StartedAt.IsZero():
		r.remove(exec, found)
		fallthrough
	case !ok && l.kept.StartedAt.IsZero():
		return moved(v1.ReasonIncarnation, fmt.Sprintf("node %s was started again before the task was", n.Name)), nil
	case !ok:
		return n.orphan(ctx, a.heartbeat, a.req)
	}
	if w.started.IsZero() {
		w.started = found.StartedAt
		a.spawned(found.StartedAt)
	}
	w.since = w.started.Add(l.kept.stoodStill())
	w.run = func(ctx context.Context, attempt executor.Attempt, _ func()) (executor.Result, error) {
		return exec.Adopt(ctx, attempt)
	}
	if err := w.resumeLog(ctx); err != nil {
		r.remove(exec, found)
		return stopped(ctx, nil), nil
	}
	res, err := w.finish(ctx, &a.members[0])
	if errors.Is(err, executor.ErrNotRunning) {
		return n.orphan(ctx, a.heartbeat, a.req)
	}
	return res, err
}

// resumeLog goes on with the log that an earlier worker has written. The error is that
// of ctx.
func (w *work) resumeLog(ctx context.Context) error {
	m := &w.attempt.members[0]
	for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
		var err error
		w.log, err = logs.Resume(ctx, w.node.Store, logs.Attempt{Run: names.Home(w.attempt.req.GetRunId(), w.attempt.req.GetChain()), Task: m.name, Attempt: m.attempt, Claim: m.claim}, w.node.logOptions(w.attempt.req))
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

// complete answers the activity of an adopted attempt, as the end of Execute would, until
// the server has taken that, or has given the task to another node.
func (n *Node) complete(a *attempt, token []byte, res *v1.ExecuteResponse, failure error) {
	res, failure = activityEnd(res, failure)
	var result any
	if failure == nil {
		result = res
	}
	for until := executor.Now().Add(cmp.Or(a.heartbeat, defaultHeartbeatTimeout)); ; {
		ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
		err := n.Client.CompleteActivity(ctx, token, result, failure)
		cancel()
		if _, gone := errors.AsType[*serviceerror.NotFound](err); err == nil || gone {
			return
		}
		if executor.Now() >= until {
			n.Logger.Warn("the end of an attempt was not told to the server", "run", a.req.GetRunId(), "task", a.members[0].name, "error", err)
			return
		}
		time.Sleep(a.terms.again)
	}
}

// discard ends an attempt that is not wanted any more, when its executor is there. What
// had completed by itself before is recorded, so that it needs not be done again. ws is
// nil when it is lost, or in use.
func (r *recovery) discard(l *legacy, exec executor.Survivor, ws *workspace.Workspace) {
	n, f := r.node, r.finds[l.req.GetType()]
	r.work.Go(func() {
		defer l.release()
		select {
		case <-f.done:
		case <-r.ctx.Done():
			return // whoever comes next finds it
		}
		a := n.newAttempt(delivery{token: l.kept.Token, queue: l.kept.Queue, heartbeat: l.kept.Heartbeat}, l.req)
		a.keepsake, a.lease = l.keepsake, nil
		a.progress.Store(&v1.ExecuteProgress{Spawned: true, StartedAt: stampOf(l.kept.StartedAt)})
		w := &work{node: n, attempt: a, ws: ws, spec: l.spec, started: l.kept.StartedAt}
		defer w.close()
		defer a.dropKeepsake()
		found, ok := f.byID[l.kept.ID]
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, cleanupTimeout)
		defer cancel()
		if w.resumeLog(ctx) != nil {
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
			return exec.Adopt(ctx, attempt)
		}
		if _, err := w.finish(ctx, &a.members[0]); err != nil && !errors.Is(err, executor.ErrNotRunning) {
			n.Logger.Warn("the end of an attempt is not known", "attempt", l.kept.ID, "error", err)
			r.remove(exec, found)
		}
	})
}

// remove ends what is left of an attempt, and tries again until that is so.
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

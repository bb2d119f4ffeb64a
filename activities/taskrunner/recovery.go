package taskrunner

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// A worker decides what becomes of each attempt that an earlier worker left. It sends a heartbeat with the token in the
// attempt's recovery file, and the server's reply decides:
//
//	recovery file ──┬─ the server wants it ──▶ it enters the ledger and is an attempt like any other
//	                ├─ it does not ──────────▶ ended; recorded if it had completed by itself; a lasting attempt
//	                │                          continues, unattended, if its run waits for it or while
//	                │                          that is unknown
//	                └─ no answer ────────────▶ retried until its lease is over, then ended
//	no recovery file ────────────────────────▶ ended; a lasting attempt once its run does not wait for it
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

// Recover continues the attempts that earlier workers of the node have left, if their executors are Survivors or Leavers. The node
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
		n.Logger.Warn("attempts of an earlier worker do not continue", "error", err)
	}
	r.left = left
	for _, l := range left {
		if l.state.Lasting {
			r.undecided[keyOf(l.req, membersOf(l.req))] = make(chan struct{})
		}
	}
	if slices.ContainsFunc(left, func(l *orphan) bool { return n.survivor(l.req.GetType()) != nil }) {
		n.State.guard(n.Logger)
	}
	n.recovery.Store(r)
	r.answerClaims()
	var workspaces []string
	for _, l := range left {
		workspaces = append(workspaces, l.state.Workspace)
	}
	if err := n.State.workspaces().Sweep(workspaces); err != nil {
		n.Logger.Warn("a private directory of an earlier worker was not removed", "error", err)
	}
	for taskType := range n.Executors {
		if s := n.adopter(taskType); s != nil {
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
		release, err := n.Room.Restore(l.req, l.state.StartedAt)
		if err != nil {
			n.Logger.Warn("an attempt of an earlier worker has no place", "attempt", l.state.ID, "error", err)
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

// decide asks the server whether it wants an attempt, and continues or ends the attempt accordingly.
func (r *recovery) decide(l *orphan, decided func()) {
	defer decided()
	n := r.node
	exec := n.adopter(l.req.GetType())
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
		n.Logger.Warn("an attempt of an earlier worker has lost its directory", "attempt", l.state.ID, "error", err)
		r.discard(l, exec, nil)
		return
	}
	progress := &historyv1.ExecuteProgress{
		Claim: l.req.GetClaim(), Spawned: !l.state.StartedAt.IsZero(), StartedAt: stampOf(l.state.StartedAt), Checkpoint: l.checkpoint(ws, &members[0]),
		SshPublicKey: loginKeys(l.req, l.spec), Workload: l.state.workload(),
	}
	t := termsOf(l.state.Heartbeat, min(cmp.Or(n.Timing.BeatInterval, reattachedBeat), reattachedBeat))
	stop, kill := l.ends()
	lease := executor.NewLease(l.lastBeat(), stop, kill)
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
			n.Logger.Info("what an earlier worker has left is ended: its run no longer waits for it", "attempt", l.state.ID)
			r.discard(l, exec, ws)
			return
		case !l.state.Lasting && (err == heartbeat.ErrGone || lease.Lost()):
			n.Logger.Info("what an earlier worker left is ended, because it is no longer wanted", "attempt", l.state.ID)
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

// awaitRecovered waits until the recovery has settled the fate of an attempt that an earlier worker left, if there is
// one. Meanwhile it sends heartbeats for the activity. The error says why the wait ended early.
func (n *Node) awaitRecovered(ctx context.Context, d delivery, req *historyv1.ExecuteRequest, key attemptKey) error {
	undecided := n.recovery.Load().undecidedOf(key)
	if undecided == nil {
		return nil
	}
	t := termsOf(d.heartbeat, n.Timing.BeatInterval)
	beat := time.NewTicker(t.beat)
	defer beat.Stop()
	for {
		select {
		case <-undecided:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.stopping:
			return errLetGo
		case <-beat.C:
			err := heartbeat.Send(ctx, n.Client, t.answer, d.token, &historyv1.ExecuteProgress{Claim: req.GetClaim(), Spawned: true})
			if err == heartbeat.ErrCancelled || err == heartbeat.ErrGone {
				return err
			}
		}
	}
}

// undecidedOf returns a channel that is closed once the recovery has settled the fate of a lasting attempt that an earlier
// worker left. It returns nil if there is no such attempt, and if the recovery is nil.
func (r *recovery) undecidedOf(key attemptKey) <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.undecided[key]
}

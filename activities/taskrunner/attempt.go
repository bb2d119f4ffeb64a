package taskrunner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	v1 "switchyard/proto/switchyard/v1"
)

// attempt is one dispatch of a task, from when the node takes it up to its answer. It is
// what one call of Execute has brought; others may reattach it, see detach.go.
//
//	waiting ──start──▶ starting ──spawned──▶ running ──▶ answering
//
// While it waits, a drain hands it back at once; from start on it may finish until
// the drain's deadline. Without a process in time it is handed back, too.
type attempt struct {
	node    *Node
	req     *v1.ExecuteRequest
	members []member // of req
	key     attemptKey
	// stop ends the attempt; the first cause counts.
	stop context.CancelCauseFunc
	// queue is that by which it came.
	queue string
	// heartbeat is its heartbeat time-out; 0: the default.
	heartbeat time.Duration
	// run runs it and returns its answer.
	run func(context.Context) (*v1.ExecuteResponse, error)

	terms terms
	lease *executor.Lease
	// takenUp is when it came, and startBy when its process must have started.
	takenUp   executor.Instant
	startBy   atomic.Int64 // an executor.Instant
	takenUpAt *timestamppb.Timestamp

	progress atomic.Pointer[v1.ExecuteProgress]
	steering steering
	spawns   chan struct{} // closed when the process, or the first of a batch, has started
	news     chan struct{} // asks for a beat now, because of what progress says
	beating  sync.WaitGroup
	endBeats context.CancelFunc

	// started is guarded by the mutex of the node's attempts.
	started bool

	// first is closed when the activity that has brought it is to leave it.
	first <-chan struct{}
	// ending says why the attempt is to end; nil: it is not.
	ending func() error
	// done is closed when the attempt has its answer, res and err, and fetched when
	// no caller needs to ask for it any more.
	done, fetched chan struct{}
	res           *v1.ExecuteResponse
	err           error

	mu sync.Mutex
	// token is that of the newest activity that waits for the attempt, or has, and attended
	// counts them. left is closed when it is to leave; nil: it has.
	token    []byte
	attended int
	left     chan struct{}
	// leftAt is when it did, alone for how long the attempt may continue then, and released
	// says that the server knows that it did.
	leftAt   executor.Instant
	alone    time.Duration
	released bool
	// recoveryFile is for a worker after this one; nil: the attempt would not outlive this one.
	recoveryFile *recoveryFile

	// claimFile is for a worker after this one, too; nil: there is none.
	claimFile *claimFile

	// lasting says that neither a lease nor a drain ends the attempt, and isLeft that this worker has left it as it is, for a later
	// one; mu guards isLeft. unattended has room for one: the attempt has become so.
	lasting    atomic.Bool
	isLeft     bool
	unattended chan struct{}
	idle       idleTimeout
	transfers  transfers
}

// delivery is how an attempt came from the server.
type delivery struct {
	token []byte
	queue string
	// heartbeat is its heartbeat time-out.
	heartbeat time.Duration
	// stopping is closed when the worker stops.
	stopping <-chan struct{}
}

func deliveryOf(ctx context.Context) delivery {
	info := activity.GetInfo(ctx)
	return delivery{
		token: info.TaskToken, queue: info.TaskQueue,
		heartbeat: info.HeartbeatTimeout, stopping: activity.GetWorkerStopChannel(ctx),
	}
}

// accept begins an attempt, whose end must be called. The context that it
// returns ends when the attempt must.
func (n *Node) accept(ctx context.Context, d delivery, req *v1.ExecuteRequest) (context.Context, *attempt) {
	a := n.newAttempt(d, req)
	a.claimFile = n.writeClaim(a, d)
	return n.begin(ctx, a, d.stopping), a
}

// newAttempt is an attempt that has not begun.
func (n *Node) newAttempt(d delivery, req *v1.ExecuteRequest) *attempt {
	t := termsOf(d.heartbeat, n.BeatInterval)
	members := membersOf(req)
	a := &attempt{
		node: n, req: req, members: members, key: keyOf(req, members), done: make(chan struct{}), fetched: make(chan struct{}), queue: d.queue, heartbeat: d.heartbeat,
		terms: t, takenUp: executor.Now(), takenUpAt: timestamppb.Now(), spawns: make(chan struct{}), news: make(chan struct{}, 1),
		unattended: make(chan struct{}, 1),
	}
	a.startBy.Store(int64(a.takenUp.Add(n.startTimeout())))
	// The server counts from when it gave the task away, of which the node knows nothing. Until
	// confirm renews the lease, it only bounds how long the attempt waits.
	a.lease = executor.NewLease(a.takenUp, t.stop, t.kill)
	a.run = func(ctx context.Context) (*v1.ExecuteResponse, error) { return n.execute(ctx, a) }
	a.progress.Store(&v1.ExecuteProgress{Claim: req.GetClaim(), Checkpoint: a.members[0].checkpoint})
	a.first = a.reattach(d.token)
	return a
}

// begin has the attempt beat. The context that it returns ends when the attempt must.
func (n *Node) begin(ctx context.Context, a *attempt, stopping <-chan struct{}) context.Context {
	ctx, a.stop = context.WithCancelCause(ctx)
	a.ending = ctx.Err
	n.attempts.enter(a)
	n.claims.takeUp()
	// Beats continue while a cancelled attempt ends: they hold its lease.
	var beats context.Context
	beats, a.endBeats = context.WithCancel(context.WithoutCancel(ctx))
	a.beating.Go(func() { a.beats(beats, stopping) })
	if a.lasts() {
		go a.superviseUnattended(context.WithoutCancel(ctx))
	}
	return ctx
}

// silence ends the heartbeats, when nothing of the attempt is left but its answer.
func (a *attempt) silence() {
	a.endBeats()
	a.beating.Wait()
}

// end gives up an attempt of which nothing is left.
func (a *attempt) end() {
	a.silence()
	a.node.attempts.leave(a)
	a.stop(nil)
}

// spawned notes that the task's process, or the first of a batch, has started.
func (a *attempt) spawned(at time.Time) {
	a.advance(func(p *v1.ExecuteProgress) { p.Spawned, p.StartedAt = true, timestamppb.New(at) })
	close(a.spawns)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.updateRecoveryFile(func(k *recoveryState) { k.StartedAt = at })
}

// advance changes what the next heartbeat says. It may call change more than once, when another call comes between.
func (a *attempt) advance(change func(p *v1.ExecuteProgress)) {
	for {
		before := a.progress.Load()
		after := proto.CloneOf(before)
		change(after)
		if a.progress.CompareAndSwap(before, after) {
			return
		}
	}
}

// extendStart notes that what the process needs is being brought, which may be silent for a
// while.
func (a *attempt) extendStart() {
	if a.isRemote() {
		return
	}
	a.startBy.Store(int64(executor.Now().Add(prepareSilence)))
}

// waiting reports whether no process has started yet.
func (a *attempt) waiting() bool { return !a.progress.Load().GetSpawned() }

// confirm asks the server, with a heartbeat that it acknowledges, whether it still wants the
// attempt, and renews the lease. It is called before anything is started: the task may have been
// given to another node meanwhile, by a network or a worker that stood still. It returns nil, or
// why ctx has ended.
func (a *attempt) confirm(ctx context.Context) error {
	for ctx.Err() == nil {
		switch err := a.beat(ctx); err {
		case nil:
			return context.Cause(ctx)
		case heartbeat.ErrCancelled, heartbeat.ErrGone:
			a.stop(err)
		default:
			select {
			case <-ctx.Done():
			case <-time.After(a.terms.again):
			}
		}
	}
	return context.Cause(ctx)
}

// stamp says where and when, as this node knows it.
func (a *attempt) stamp(res *v1.ExecuteResponse) {
	res.Node, res.AssignedAt = a.node.Name, a.takenUpAt
	res.StartedAt, res.CompletedAt = a.progress.Load().GetStartedAt(), timestamppb.Now()
}

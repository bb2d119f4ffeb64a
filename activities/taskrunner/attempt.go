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

// attempt is one dispatch of a task, from the moment that the node accepts it until its answer. One call of Execute
// brings it; other calls may reattach it (see detach.go).
//
//	waiting ──start──▶ starting ──spawned──▶ running ──▶ answering
//
// A drain hands a waiting attempt back at once. From start on, the attempt may finish until the drain's deadline. An
// attempt that has no process within the start time-out is handed back, too.
type attempt struct {
	node    *Node
	req     *v1.ExecuteRequest
	members []member // of req
	key     attemptKey
	// stop ends the attempt; the first cause counts.
	stop context.CancelCauseFunc
	// queue is the task queue that delivered the attempt.
	queue string
	// heartbeat is the heartbeat time-out, or 0 for the default.
	heartbeat time.Duration
	// run executes the attempt and returns its answer.
	run func(context.Context) (*v1.ExecuteResponse, error)

	terms terms
	lease *executor.Lease
	// takenUp is when the node accepted the attempt, and startBy when its process must have started.
	takenUp   executor.Instant
	startBy   atomic.Int64 // an executor.Instant
	takenUpAt *timestamppb.Timestamp

	progress atomic.Pointer[v1.ExecuteProgress]
	steering steering
	spawns   chan struct{} // closed when the process, or the first of a batch, has started
	news     chan struct{} // asks for a heartbeat now, because progress has changed
	beating  sync.WaitGroup
	endBeats context.CancelFunc

	// started is guarded by the mutex of the node's attempts.
	started bool

	// first is closed when the activity that brought the attempt is to leave it.
	first <-chan struct{}
	// ending returns why the attempt is to end, or nil if it is not.
	ending func() error
	// done is closed when the attempt has its answer, res and err. fetched is closed when no caller needs that answer any
	// more.
	done, fetched chan struct{}
	res           *v1.ExecuteResponse
	err           error

	mu sync.Mutex
	// token is the token of the newest activity that waits, or has waited, for the attempt. attended counts those
	// activities. left is closed when the newest is to leave the attempt, and is nil once it has.
	token    []byte
	attended int
	left     chan struct{}
	// leftAt is when the activity left, and alone how long the attempt may then continue. released is set once the server
	// has the activity's answer.
	leftAt   executor.Instant
	alone    time.Duration
	released bool
	// recoveryFile lets a later worker continue the attempt. It is nil if the attempt cannot outlive this worker.
	recoveryFile *recoveryFile

	// claimFile lets a later worker answer for the attempt, or is nil.
	claimFile *claimFile

	// lasting is set when neither a lease nor a drain ends the attempt. isLeft is set when this worker leaves the running
	// attempt to a later one; mu guards isLeft. unattended holds one signal: no activity waits for the attempt any more.
	lasting    atomic.Bool
	isLeft     bool
	unattended chan struct{}
	idle       idleTimeout
	transfers  transfers
}

// delivery holds what the server sent along with a request.
type delivery struct {
	token []byte
	queue string
	// heartbeat is the heartbeat time-out of the activity.
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

// accept creates and begins an attempt. The caller must call its end. The returned context ends when the attempt must.
func (n *Node) accept(ctx context.Context, d delivery, req *v1.ExecuteRequest) (context.Context, *attempt) {
	a := n.newAttempt(d, req)
	a.claimFile = n.writeClaim(a, d)
	return n.begin(ctx, a, d.stopping), a
}

// newAttempt returns an attempt that has not begun.
func (n *Node) newAttempt(d delivery, req *v1.ExecuteRequest) *attempt {
	t := termsOf(d.heartbeat, n.Timing.BeatInterval)
	members := membersOf(req)
	a := &attempt{
		node: n, req: req, members: members, key: keyOf(req, members), done: make(chan struct{}), fetched: make(chan struct{}), queue: d.queue, heartbeat: d.heartbeat,
		terms: t, takenUp: executor.Now(), takenUpAt: timestamppb.Now(), spawns: make(chan struct{}), news: make(chan struct{}, 1),
		unattended: make(chan struct{}, 1),
	}
	a.startBy.Store(int64(a.takenUp.Add(n.Timing.startTimeout())))
	// The server counts from when it handed out the task, a time that the node does not know. Until confirm renews this
	// lease, it only bounds how long the attempt waits.
	a.lease = executor.NewLease(a.takenUp, t.stop, t.kill)
	a.run = func(ctx context.Context) (*v1.ExecuteResponse, error) { return n.execute(ctx, a) }
	a.progress.Store(&v1.ExecuteProgress{Claim: req.GetClaim(), Checkpoint: a.members[0].checkpoint})
	a.first = a.reattach(d.token)
	return a
}

// begin starts the heartbeats of the attempt. The returned context ends when the attempt must.
func (n *Node) begin(ctx context.Context, a *attempt, stopping <-chan struct{}) context.Context {
	ctx, a.stop = context.WithCancelCause(ctx)
	a.ending = ctx.Err
	n.attempts.enter(a)
	n.attempts.claims.takeUp()
	// Heartbeats continue while a cancelled attempt ends: they hold its lease.
	var beats context.Context
	beats, a.endBeats = context.WithCancel(context.WithoutCancel(ctx))
	a.beating.Go(func() { a.beats(beats, stopping) })
	if a.lasts() {
		go a.superviseUnattended(context.WithoutCancel(ctx))
	}
	return ctx
}

// silence stops the heartbeats, once only the answer of the attempt is left.
func (a *attempt) silence() {
	a.endBeats()
	a.beating.Wait()
}

// end removes an attempt that has nothing running any more.
func (a *attempt) end() {
	a.silence()
	a.node.attempts.leave(a)
	a.stop(nil)
}

// spawned records that the task's process, or the first of a batch, has started.
func (a *attempt) spawned(at time.Time) {
	a.advance(func(p *v1.ExecuteProgress) { p.Spawned, p.StartedAt = true, timestamppb.New(at) })
	close(a.spawns)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.updateRecoveryFile(func(k *recoveryState) { k.StartedAt = at })
}

// advance changes the content of the next heartbeat. It may call change more than once, if another goroutine advances it
// at the same time.
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

// extendStart postpones the start deadline while something that the process needs is being fetched, which may be silent
// for a while.
func (a *attempt) extendStart() {
	if a.isRemote() {
		return
	}
	a.startBy.Store(int64(executor.Now().Add(prepareSilence)))
}

// waiting reports whether no process has started yet.
func (a *attempt) waiting() bool { return !a.progress.Load().GetSpawned() }

// confirm asks the server whether it still wants the attempt, with a heartbeat that the server acknowledges, and renews
// the lease. It must be called before anything is started: if the network or the worker was stalled, the server may have
// given the task to another node. It returns nil, or why ctx has ended.
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

// stamp adds the node's name and its times to an answer.
func (a *attempt) stamp(res *v1.ExecuteResponse) {
	res.Node, res.AssignedAt = a.node.Name, a.takenUpAt
	res.StartedAt, res.CompletedAt = a.progress.Load().GetStartedAt(), timestamppb.Now()
}

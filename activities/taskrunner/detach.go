package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// An attempt outlives its activity when its run continues in another execution:
//
//	Execute ──▶ attended ──Detach──▶ left ──▶ the server has the answer "detached"
//	               ▲                                  │ the lease is a long one
//	               └───────── Execute that reattaches ◀┘
//
// Detach makes the activity answer "detached". Until the server is known to have that answer, the attempt keeps sending
// heartbeats under its short lease: if the answer were lost, the server would give the task to another node. Once the
// server has the answer, only the run itself could do so, and it waits for the end of the long lease. An attempt that
// ends meanwhile keeps its answer for the activity that reattaches it.

// defaultDetached is how long a detached attempt runs unattended if the request does not say.
const defaultDetached = time.Minute

// longestOrphan bounds the search for the records of an attempt that is not on the node any more.
const longestOrphan = 30 * time.Second

var (
	// errDetached is the result of a heartbeat if no activity waits for the attempt.
	errDetached = errors.New("no activity waits for the attempt for now")
	// errReattached is the result of a heartbeat for an activity that another one has replaced.
	errReattached = errors.New("another activity has taken the attempt over")
)

// attemptKey identifies an attempt on its node.
type attemptKey struct{ home, id string }

// keyOf returns the key of the attempt that runs the members of a request.
func keyOf(req *v1.ExecuteRequest, members []member) attemptKey {
	return attemptKey{names.Home(req.GetRunId(), req.GetChain()), names.AttemptID(members[0].name, members[0].claim)}
}

// Detach lets attempts continue after the activities that wait for them end. The answer names the attempts that do not
// continue. Detach is idempotent.
func (n *Node) Detach(_ context.Context, req *v1.DetachRequest) (*v1.DetachResponse, error) {
	lease := cmp.Or(req.GetLease().AsDuration(), defaultDetached)
	res := &v1.DetachResponse{}
	for _, c := range req.GetAttempts() {
		a := n.attempts.find(attemptKey{names.Home(req.GetRunId(), req.GetChain()), names.AttemptID(c.GetTask(), c.GetClaim())})
		if a == nil || !a.detach(max(lease, a.heartbeat)) {
			res.Others = append(res.Others, c)
		}
	}
	return res, nil
}

// detach makes the waiting activity leave the attempt. It returns false if the attempt has ended or is about to.
func (a *attempt) detach(lease time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending() != nil || a.isOver() {
		return false
	}
	if a.left != nil {
		close(a.left)
		a.left, a.leftAt, a.alone = nil, executor.Now(), lease
		a.updateRecoveryFile(func(k *recoveryState) { k.AloneUntil = time.Now().Add(lease) })
		a.beatNow()
	}
	return true
}

// isOver reports whether the attempt has its answer.
func (a *attempt) isOver() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// reattach makes an activity the one that waits for the attempt. The returned channel is closed when that activity is to
// leave.
func (a *attempt) reattach(token []byte) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left != nil {
		close(a.left)
	}
	left := make(chan struct{})
	if a.attended > 0 {
		a.beatNow() // report to the server at once that the attempt runs
	}
	a.attended++
	a.token, a.left, a.released = token, left, false
	a.updateRecoveryFile(func(k *recoveryState) { k.Token, k.AloneUntil = token, time.Time{} })
	return left
}

// awaitEnd waits for the end of an attempt on behalf of the activity that reattach has registered. It returns early when
// left is closed. When ctx ends, it stops the attempt.
func (a *attempt) awaitEnd(ctx context.Context, left <-chan struct{}) (*v1.ExecuteResponse, error) {
	unhear := context.AfterFunc(ctx, func() { a.stop(context.Cause(ctx)) })
	defer unhear()
	select {
	case <-a.done:
	case <-left:
		if !a.isOver() {
			return &v1.ExecuteResponse{
				State: v1.AttemptDetached, Node: a.node.Name, AssignedAt: a.takenUpAt, StartedAt: a.progress.Load().GetStartedAt(),
			}, nil
		}
	}
	a.node.attempts.leave(a)
	return a.res, a.err
}

// runToEnd runs an attempt until it has its answer, which awaitEnd returns. The answer of a detached attempt is kept
// until it is too late for another activity to fetch it.
func (a *attempt) runToEnd(ctx context.Context) {
	res, err := a.guarded(ctx)
	if res != nil && res.Node == "" {
		a.stamp(res)
	}
	if err != errLetGo {
		a.node.attemptMetrics().countAttempt(a.req.GetType(), res)
		a.node.attempts.claims.end(res)
	}
	a.silence()
	a.claimFile.remove()
	a.mu.Lock()
	a.res, a.err = res, err
	close(a.done)
	detached, until := a.left == nil, a.leftAt.Add(a.alone)
	a.mu.Unlock()
	a.stop(nil)
	switch {
	case err == errLetGo && detached:
		a.node.attempts.leave(a)
	case detached && a.isLasting():
		// The answer stays until the run has fetched it or no longer waits for it.
	case detached:
		time.AfterFunc(max(until.Sub(executor.Now()), 0), func() { a.node.attempts.leave(a) })
	}
}

// guarded executes an attempt. A panic ends only that attempt.
func (a *attempt) guarded(ctx context.Context) (res *v1.ExecuteResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.node.Logger.Error("an attempt has failed by a fault of this program", "run", a.req.GetRunId(), "task", a.members[0].name,
				"panic", p, "stack", string(debug.Stack()))
			res, err = nil, fmt.Errorf("a fault of the node: %v", p)
		}
	}()
	return a.run(ctx)
}

// gone handles a heartbeat of the attended-th activity that the server does not know any more. It returns the error for
// the caller of beat.
func (a *attempt) gone(attended int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case attended != a.attended:
		return errReattached
	case a.left != nil && a.isLasting():
		a.leaveUnattended()
		return errDetached
	case a.left != nil:
		return heartbeat.ErrGone
	}
	// The server does not know the activity because it has the answer. If the heartbeat time-out had passed instead, the
	// lease would be over, too, and could not be renewed.
	a.released = true
	a.lease.Renew(a.leftAt.Add(a.alone - a.terms.kill))
	return errDetached
}

// lostAnswer returns the answer for an attempt that is not on this node any more, because the worker was restarted or the
// attempt ran unattended for too long. A recorded result counts.
func (n *Node) lostAnswer(ctx context.Context, heartbeat time.Duration, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	res := &v1.ExecuteResponse{
		State: v1.TaskLost, Reason: v1.ReasonNodeLost, Node: n.Name,
		Error: fmt.Sprintf("node %s was started again, or was cut off for too long, while the task ran", n.Name),
	}
	ctx, cancel := context.WithTimeout(ctx, min(cmp.Or(heartbeat, defaultHeartbeatTimeout)/2, longestOrphan))
	defer cancel()
	members := endedMembersOf(req)
	before, err := n.records().awaitPriorResults(ctx, req, members)
	if err != nil {
		return res, nil // the next attempt tries again
	}
	return withPriorResults(res, req, members, before), nil
}

// endedMembersOf returns the members of a request, with their own attempts counted as unacknowledged.
func endedMembersOf(req *v1.ExecuteRequest) []member {
	members := membersOf(req)
	for i := range members {
		members[i].unacknowledged = append(slices.Clip(members[i].unacknowledged), members[i].attempt)
	}
	return members
}

// withPriorResults returns the answer for a request whose attempt is lost, given the recorded results of its members.
func withPriorResults(lost *v1.ExecuteResponse, req *v1.ExecuteRequest, members []member, before map[int32]priorResult) *v1.ExecuteResponse {
	limit := int(req.GetInlineLimit())
	if len(req.GetBatch()) == 0 {
		for _, earlier := range before {
			return earlier.cut(limit)
		}
		return lost
	}
	b := &batch{req: req, limit: min(limit, maxBatchAnswer/len(members)), began: time.Now()}
	for _, earlier := range before {
		if at := earlier.res.GetAssignedAt(); at != nil && at.AsTime().Before(b.began) {
			b.began, lost.AssignedAt = at.AsTime(), at
		}
	}
	for i := range members {
		if earlier, ok := before[members[i].index]; ok {
			lost.Batch = append(lost.Batch, b.result(&members[i], earlier.cut(b.limit)))
		}
	}
	if len(lost.Batch) == len(members) {
		lost.State, lost.Reason, lost.Error = v1.TaskCompleted, "", ""
	}
	return lost
}

// AwaitDetached returns when each currently detached attempt, except lasting ones, has been reattached and answered, or
// when ctx ends.
func (n *Node) AwaitDetached(ctx context.Context) {
	for _, a := range n.attempts.all() {
		a.mu.Lock()
		detached := a.left == nil && !a.isLasting()
		a.mu.Unlock()
		if detached {
			await(ctx, a.fetched)
		}
	}
}

// AwaitEnds returns when all current attempts of the node have ended and the executors of remote attempts know which ends
// the server has, or when ctx ends.
func (n *Node) AwaitEnds(ctx context.Context) {
	for _, a := range n.attempts.all() {
		await(ctx, a.done)
	}
	recorded := make(chan struct{})
	go func() { n.attempts.recording.Wait(); close(recorded) }()
	await(ctx, recorded)
}

func await(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

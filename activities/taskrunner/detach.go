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

// An attempt outlives the activity that has brought it when its run continues in
// another execution:
//
//	Execute ──▶ attended ──Detach──▶ left ──▶ the server has taken that
//	               ▲                                  │ the lease is a long one
//	               └───────── Execute that reattaches ◀┘
//
// Detach has the activity answer "detached". Until the server is known to have that
// answer the attempt continues with its heartbeats and the short lease that they renew:
// were the answer lost, the server would give the task to another node. Once the
// server has it, only the run itself could, which waits for the end of the long lease.
// An attempt that ends meanwhile keeps its answer for whoever reattaches it.

// defaultDetached is how long an attempt runs unattended
// where the request does not say.
const defaultDetached = time.Minute

// longestOrphan bounds for how long the records of an attempt are looked for that is not
// here to be reattached.
const longestOrphan = 30 * time.Second

var (
	// errDetached: no activity waits for the attempt, and none takes its heartbeats.
	errDetached = errors.New("no activity waits for the attempt for now")
	// errReattached says that a heartbeat was for an activity that another one has followed.
	errReattached = errors.New("another activity has taken the attempt over")
)

// attemptKey names an attempt on its node.
type attemptKey struct{ home, id string }

// keyOf is the key of the attempt that runs the members of a request.
func keyOf(req *v1.ExecuteRequest, members []member) attemptKey {
	return attemptKey{names.Home(req.GetRunId(), req.GetChain()), names.AttemptID(members[0].name, members[0].claim)}
}

// Detach lets attempts continue although the activities that wait for them end now. Those
// that it does not name in its answer do; to be asked twice changes nothing.
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

// detach has the activity that waits for the attempt leave it. It is false when the
// attempt has ended, or is about to.
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

// reattach makes an activity the one that waits for the attempt. The channel is closed
// when it is to leave it.
func (a *attempt) reattach(token []byte) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left != nil {
		close(a.left)
	}
	left := make(chan struct{})
	if a.attended > 0 {
		a.beatNow() // the server is to learn at once that it runs
	}
	a.attended++
	a.token, a.left, a.released = token, left, false
	a.updateRecoveryFile(func(k *recoveryState) { k.Token, k.AloneUntil = token, time.Time{} })
	return left
}

// awaitEnd waits for the end of an attempt as the activity that attach has made the one
// that does, until it is to leave the attempt. The end of ctx ends the attempt.
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

// runToEnd carries an attempt through. Its answer waits for whoever attends it, and of
// one that is detached until it is too late for one to come, if ever.
func (a *attempt) runToEnd(ctx context.Context) {
	res, err := a.guarded(ctx)
	if res != nil && res.Node == "" {
		a.stamp(res)
	}
	if err != errLetGo {
		a.node.countAttempt(a.req.GetType(), res)
		a.node.claims.end(res)
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
		// The answer waits until the run has it, or does not wait for it.
	case detached:
		time.AfterFunc(max(until.Sub(executor.Now()), 0), func() { a.node.attempts.leave(a) })
	}
}

// guarded executes an attempt. A fault of the program ends that attempt only.
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

// gone takes it that the server does not know the activity with which a beat was sent,
// the attended-th one, and says what that means.
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
	// It knows the activity no more because it has its answer. Had the time-out been over
	// instead, the lease would be, too, and could not be renewed.
	a.released = true
	a.lease.Renew(a.leftAt.Add(a.alone - a.terms.kill))
	return errDetached
}

// lostAnswer returns the end of an attempt that is not here any more: the worker was started
// again, or the attempt has run unattended for too long. What it has recorded counts.
func (n *Node) lostAnswer(ctx context.Context, heartbeat time.Duration, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	res := &v1.ExecuteResponse{
		State: v1.TaskLost, Reason: v1.ReasonNodeLost, Node: n.Name,
		Error: fmt.Sprintf("node %s was started again, or was cut off for too long, while the task ran", n.Name),
	}
	ctx, cancel := context.WithTimeout(ctx, min(cmp.Or(heartbeat, defaultHeartbeatTimeout)/2, longestOrphan))
	defer cancel()
	members := endedMembersOf(req)
	before, err := n.awaitPriorResults(ctx, req, members)
	if err != nil {
		return res, nil // the next attempt looks again
	}
	return withPriorResults(res, req, members, before), nil
}

// endedMembersOf returns the members of a request, whose attempts count as unacknowledged.
func endedMembersOf(req *v1.ExecuteRequest) []member {
	members := membersOf(req)
	for i := range members {
		members[i].unacknowledged = append(slices.Clip(members[i].unacknowledged), members[i].attempt)
	}
	return members
}

// withPriorResults returns the answer to a request whose attempt is lost, given what its members have recorded.
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

// AwaitDetached returns when every attempt that is detached now, and not lasting, has been taken over
// and answered, or when ctx ends.
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

// AwaitEnds returns when nothing runs any more of the attempts that the node has now, and the executors of remote ones
// know which ends the server has, or when ctx ends.
func (n *Node) AwaitEnds(ctx context.Context) {
	for _, a := range n.attempts.all() {
		await(ctx, a.done)
	}
	recorded := make(chan struct{})
	go func() { n.recording.Wait(); close(recorded) }()
	await(ctx, recorded)
}

func await(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

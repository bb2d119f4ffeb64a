package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
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
// ends meanwhile keeps its answer for the activity that reattaches it. The answer "detached" says how long the run waits; the
// lease is a part of that.

// defaultDetached is how long a detached attempt runs unattended if the request does not say.
const defaultDetached = time.Minute

var (
	// errDetached is the result of a heartbeat if no activity waits for the attempt.
	errDetached = errors.New("no activity waits for the attempt for now")
	// errReattached is the result of a heartbeat for an activity that another one has replaced.
	errReattached = errors.New("another activity has taken the attempt over")
)

// attemptKey identifies an attempt on its node.
type attemptKey struct{ home, id string }

// keyOf returns the key of the attempt that runs the members of a request.
func keyOf(req *historyv1.ExecuteRequest, members []member) attemptKey {
	return attemptKey{names.Home(req.GetRunId(), req.GetChain()), names.AttemptID(members[0].name, members[0].claim)}
}

// Detach lets attempts continue after the activities that wait for them end. The answer names the attempts that do not
// continue. Detach is idempotent.
func (n *Node) Detach(_ context.Context, req *historyv1.DetachRequest) (*historyv1.DetachResponse, error) {
	lease := cmp.Or(req.GetLease().AsDuration(), defaultDetached)
	res := &historyv1.DetachResponse{}
	for _, c := range req.GetAttempts() {
		a := n.attempts.find(attemptKey{names.Home(req.GetRunId(), req.GetChain()), names.AttemptID(c.GetTask(), c.GetClaim())})
		if a == nil || !a.attendance.detach(lease, a.ending) {
			res.Others = append(res.Others, c)
		}
	}
	return res, nil
}

// AwaitDetached returns when each currently detached attempt, except lasting ones, has been reattached and answered, or
// when ctx ends.
func (n *Node) AwaitDetached(ctx context.Context) {
	for _, a := range n.attempts.all() {
		if a.attendance.isUnattended() && !a.isLasting() {
			await(ctx, a.attendance.fetched)
		}
	}
}

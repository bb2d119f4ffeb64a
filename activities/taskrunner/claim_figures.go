package taskrunner

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// maxActiveClaims is the largest number of claims that a snapshot lists.
const maxActiveClaims = 256

// claimCounts counts the ended claims of a node. The zero value is ready. It is safe for concurrent use.
type claimCounts struct {
	mu      sync.Mutex
	ended   map[string]int32 // by state
	expired int32
	last    time.Time
}

// takeUp records that the node has accepted a claim.
func (c *claimCounts) takeUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
}

// end counts an ended claim by its answer, which is nil if the node itself was at fault.
func (c *claimCounts) end(res *historyv1.ExecuteResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = map[string]int32{}
	}
	c.ended[cmp.Or(res.GetState(), v1.TaskFailed)]++
	if res.GetReason() == v1.ReasonLeaseLost {
		c.expired++
	}
	c.last = time.Now()
}

// figures returns the counts so far.
func (c *claimCounts) figures() *v1.ClaimFigures {
	c.mu.Lock()
	defer c.mu.Unlock()
	figures := &v1.ClaimFigures{Ended: maps.Clone(c.ended), LeasesExpired: c.expired}
	if !c.last.IsZero() {
		figures.LastActivityAt = timestamppb.New(c.last)
	}
	return figures
}

// ClaimFigures returns the counts of the node's claims since its start, and its active claims.
func (n *Node) ClaimFigures() *v1.ClaimFigures {
	figures := n.attempts.claims.figures()
	figures.TakenUp = int32(n.attempts.total())
	for _, a := range n.attempts.all() {
		if !a.attendance.isOver() {
			figures.Active = append(figures.Active, a.activeClaim())
		}
	}
	slices.SortFunc(figures.Active, func(a, b *v1.ActiveClaim) int {
		return cmp.Or(cmp.Compare(a.GetRunId(), b.GetRunId()), cmp.Compare(a.GetTaskId(), b.GetTaskId()), cmp.Compare(a.GetClaim(), b.GetClaim()))
	})
	figures.Active = figures.Active[:min(len(figures.Active), maxActiveClaims)]
	return figures
}

// activeClaim returns the claim of the attempt for a snapshot.
func (a *attempt) activeClaim() *v1.ActiveClaim {
	status := v1.TaskRunning
	if a.progress.isWaiting() {
		status = v1.TaskAssigned
	}
	lease := a.beats.lease
	stopAt := time.Now().Add(lease.StopAt().Sub(executor.Now()))
	return &v1.ActiveClaim{
		RunId: a.req.GetRunId(), TaskId: a.members[0].name, Status: status, ClaimAttempt: a.req.GetAttempt(), Claim: a.req.GetClaim(),
		ClaimExpiresAt: timestamppb.New(stopAt), UpdatedAt: timestamppb.New(stopAt.Add(-lease.StopAt().Sub(lease.Begin()))),
	}
}

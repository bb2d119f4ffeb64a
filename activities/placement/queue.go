package placement

import (
	"cmp"
	"maps"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Queue is the placement queue: the nodes, the assignments to them, and the waiting requests. It is
// not safe for concurrent use.
type Queue struct {
	opts      Options
	born      time.Time
	fleet     *fleet
	demand    *demand
	scheduler *scheduler
}

// New returns an empty queue without nodes.
func New(opts Options) *Queue {
	opts = opts.WithDefaults()
	sc := newScheduler(opts)
	return &Queue{opts: opts, born: opts.Now(), fleet: sc.fleet, demand: sc.demand, scheduler: sc}
}

// Epoch returns the identity of the queue.
func (q *Queue) Epoch() string { return q.opts.Epoch }

// HasRun reports whether the run has made a request since it was last forgotten.
func (q *Queue) HasRun(runID string) bool { return q.demand.runs[runID] != nil }

// Runs returns the ids of the known runs in ascending order.
func (q *Queue) Runs() []string { return q.demand.runIDs() }

// SetNodes replaces the fleet with the registered nodes. A node that is missing from the list has
// left; its assignments remain until they are released. The cost depends only on the nodes whose
// snapshot or state has changed.
func (q *Queue) SetNodes(nodes []Node) { q.fleet.replace(nodes, q.opts.Now()) }

// SetExpectingNodes sets whether nodes are about to register. While they are, no placement time-out
// runs, because requests may be waiting for these nodes.
func (q *Queue) SetExpectingNodes(expecting bool) { q.demand.timeouts.expecting = expecting }

// Request adds requests of a run. It is idempotent: repeating a claim changes nothing, except that
// the next Take reports its assignment, its reason or that it was given up once more. A newer claim
// of a task replaces and releases the older one. Request ignores a claim that is older than the
// newest or has been released, so that a delayed duplicate does no harm.
func (q *Queue) Request(of Run, reqs []*historyv1.TaskRequest) {
	if len(reqs) == 0 {
		return
	}
	owner, now := q.demand.runOf(of), q.opts.Now()
	for _, req := range reqs {
		if owner.hasReleased(req.GetTask(), req.GetClaim()) {
			continue
		}
		old := owner.tasks[req.GetTask()]
		switch {
		case old == nil:
			q.demand.add(owner, req, now)
		case old.claim == req.GetClaim():
			q.demand.repeat(old)
		case old.claim < req.GetClaim():
			q.remove(old, now)
			q.demand.add(owner, req, now)
		}
	}
}

// Release releases claims that have ended, moved or are no longer needed. It frees what an assigned
// claim holds and drops a waiting one. It ignores claims that are unknown or were released before.
// The outcome of a claim also affects its node: a node that refused the task gets no requests for
// the same resources until its next snapshot, and a node that keeps failing is benched.
func (q *Queue) Release(runID string, claims []*historyv1.ClaimRef) {
	owner, now := q.demand.runs[runID], q.opts.Now()
	for _, c := range claims {
		key := claimKey{run: runID, task: c.GetTask(), claim: c.GetClaim()}
		if n := q.fleet.ledger.releaseForeign(key, now); n != nil {
			q.fleet.healths.settle(n, q.born, c.GetOutcome(), now)
		}
		if owner == nil {
			continue
		}
		owner.noteReleased(key.task, key.claim)
		r := owner.tasks[key.task]
		if r == nil || r.claim > key.claim {
			continue
		}
		if r.claim == key.claim && r.state == assigned {
			q.noteOutcome(r, c.GetOutcome(), now)
		}
		q.remove(r, now)
	}
}

// noteOutcome updates the node of an assigned request with the outcome of its claim.
func (q *Queue) noteOutcome(r *request, outcome string, now time.Time) {
	n := r.place.node
	q.fleet.healths.settle(n, r.place.assignedAt, outcome, now)
	r.place.cutShort = outcome != "" && outcome != v1.OutcomeDone
	if outcome == v1.OutcomeDone {
		q.scheduler.durations.measure(r.place.kind, now.Sub(r.place.assignedAt))
	}
	if outcome == v1.OutcomeRefused {
		n.refuse(r.class.ask)
	}
}

// Forget releases everything that the run holds and drops all its waiting requests.
func (q *Queue) Forget(runID string) {
	owner := q.demand.runs[runID]
	if owner == nil {
		return
	}
	now := q.opts.Now()
	for _, r := range slices.SortedFunc(maps.Values(owner.tasks), func(a, b *request) int { return cmp.Compare(a.age.seq, b.age.seq) }) {
		q.remove(r, now)
	}
	q.demand.forget(owner)
}

// remove ends a request in any state.
func (q *Queue) remove(r *request, now time.Time) {
	if r.state == assigned {
		q.fleet.release(&r.place, now)
	}
	q.scheduler.reservations.cancel(r)
	q.demand.remove(r)
}

// Place makes one pass over all waiting requests across runs, the most urgent first and then the
// oldest, and assigns each request that fits a node to the best node. The members of a gang are assigned
// in the same pass or not at all, and the next Take reports all of them. Place returns the sorted ids of
// the runs that have something to take, including runs that have not yet taken the result of an
// earlier pass.
//
// A pass costs O(log waiting) and a few looks at nodes for each request that it places, one look at
// each changed node for each request class, and one look at each node for each class that finds it
// full. A gang also looks again at the nodes where some of its members had room. A pass looks at no node if nothing has changed.
func (q *Queue) Place() []string {
	q.scheduler.place(q.opts.Now())
	return q.demand.runsToReport()
}

// NextDeadline returns the earliest time at which a pass may give up or place a request although
// nothing else has happened: because a placement time-out expires, a delay is over, or a bench
// ends. ok is false if there is no such time. The time may be too early, if the request concerned
// has been released, but is never too late.
func (q *Queue) NextDeadline() (at time.Time, ok bool) { return q.scheduler.nextDeadline() }

// Take returns what is new for a run since its last Take, oldest request first: tasks that were
// assigned to a node, and tasks that wait. A waiting task is reported when its request is new, when
// it becomes impossible or possible to place, and when it was given up. A change of wording alone,
// such as of the free memory of some node, is reported at most once per Options.ReasonInterval.
func (q *Queue) Take(runID string) ([]*historyv1.Assignment, []*historyv1.Waiting) {
	owner := q.demand.runs[runID]
	if owner == nil {
		return nil, nil
	}
	return q.demand.collect(owner)
}

// Repeat makes the next Take report claims of a run once more. It skips claims that have been
// released or are unknown.
func (q *Queue) Repeat(runID string, claims []*historyv1.ClaimRef) {
	for _, c := range claims {
		if r := q.demand.requestOf(runID, c.GetTask()); r != nil && r.claim == c.GetClaim() {
			q.demand.repeat(r)
		}
	}
}

// SetTerms replaces the terms of owners and groups of owners, by name. The next pass considers all waiting requests again.
func (q *Queue) SetTerms(terms map[string]Terms) {
	q.scheduler.accounts.setTerms(terms, q.opts.Now())
	q.demand.hasNews = true
}

// Usage returns what the owners and groups use, by name.
func (q *Queue) Usage() map[string]*v1.OwnerUse {
	uses := q.scheduler.accounts.usage(q.opts.Now())
	for _, r := range q.demand.runs {
		waits := 0
		for _, req := range r.tasks {
			if req.state == waiting {
				waits++
			}
		}
		for a := r.account.parent; a != nil; a = a.parent {
			uses[a.name].Waiting += int32(waits)
		}
	}
	q.scheduler.accounts.addEntitled(uses)
	return uses
}

// RestoreUsage sets what owners and groups had used lately when Usage of an earlier queue was called. It changes nothing for those
// who have used something since.
func (q *Queue) RestoreUsage(uses map[string]*v1.OwnerUse, at time.Time) {
	q.scheduler.accounts.restore(uses, at, q.opts.Now())
}

// Counts returns the number of requests that wait for a node, without those that were given up, and
// the number of requests that hold a place on a node.
func (q *Queue) Counts() (waiting, placed int) { return q.demand.waitingCount(), q.fleet.claimCount() }

// Benched returns the nodes that get no tasks for a while because their attempts kept failing for system
// reasons, each with the end of its bench.
func (q *Queue) Benched() map[string]time.Time { return q.fleet.benched(q.opts.Now()) }

// Suspicions returns, for each known node by name, the number of dispatches that it has not picked up or not
// started.
func (q *Queue) Suspicions() map[string]int32 { return q.fleet.healths.suspicionsByNode() }

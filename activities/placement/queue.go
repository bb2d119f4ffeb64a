package placement

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Queue is the placement queue: the nodes, the assignments to them, and the waiting requests. It is
// not safe for concurrent use.
type Queue struct {
	opts       Options
	byName     []filter // for the node's name
	byKind     []filter // for what even an idle node can fail
	capacities []filter // for what the node may satisfy at another time

	nodes       map[string]*node
	listed      []*node // present nodes, by name
	all         pool    // present nodes, from which a request class starts
	numbered    []*node // by node.number
	layout      uint64  // changes when nodes and node classes are renumbered
	nodeClasses map[string]int
	scratch     []byte
	round       uint64 // number of the newest SetNodes
	machines    map[string]*machine
	uncounted   []*machine // machines whose nodes have changed
	foreign     map[claimKey]*node
	healths     map[string]*health // of failing nodes, by name
	// suspicions counts, by node, the dispatches that the node has not picked up or not started.
	suspicions map[string]int32
	born       time.Time

	runs    map[string]*run
	classes map[string]*requestClass
	active  []*requestClass // classes with waiting requests
	rests   uint64          // how often a request class became idle
	delayed delayHeap
	timed   map[*requestClass]struct{} // impossible request classes with a running placement time-out
	seq     uint64
	// expecting is set while nodes are about to register.
	expecting bool

	now          time.Time // time of the current pass
	asked        bool      // there are requests that no pass has considered
	fleetChanged bool
	moved        bool              // room may have appeared since the last pass
	touched      changes           // nodes where room may have appeared
	reshaped     changes           // nodes that are new, have left or have another class
	level        level             // of the current pass
	reserved     []*node           // nodes kept free of prefetched requests for the sake of priority
	reordered    bool              // the highest priority of a request class has changed since nodes were reserved
	reports      map[*run]struct{} // runs that have something to take
}

// New returns an empty queue without nodes.
func New(opts Options) *Queue {
	opts = opts.WithDefaults()
	return &Queue{
		opts:        opts,
		byName:      identityFilters(),
		byKind:      nodeFilters(),
		capacities:  capacityFilters(),
		nodes:       map[string]*node{},
		layout:      1,
		nodeClasses: map[string]int{},
		machines:    map[string]*machine{},
		foreign:     map[claimKey]*node{},
		healths:     map[string]*health{},
		suspicions:  map[string]int32{},
		born:        opts.Now(),
		runs:        map[string]*run{},
		classes:     map[string]*requestClass{},
		timed:       map[*requestClass]struct{}{},
		reports:     map[*run]struct{}{},
	}
}

// Epoch returns the identity of the queue.
func (q *Queue) Epoch() string { return q.opts.Epoch }

// Knows reports whether the run has made a request since it was last forgotten.
func (q *Queue) Knows(runID string) bool { return q.runs[runID] != nil }

// Runs returns the ids of the known runs in ascending order.
func (q *Queue) Runs() []string { return slices.Sorted(maps.Keys(q.runs)) }

// Request adds requests of a run. It is idempotent: repeating a claim changes nothing, except that
// the next Take reports its assignment, its reason or that it was given up once more. A newer claim
// of a task replaces and releases the older one. Request ignores a claim that is older than the
// newest or has been released, so that a delayed duplicate does no harm.
func (q *Queue) Request(runID string, reqs []*v1.TaskRequest) {
	if len(reqs) == 0 {
		return
	}
	owner := q.runs[runID]
	if owner == nil {
		owner = &run{id: runID, tasks: map[string]*request{}, released: map[string]int32{}}
		q.runs[runID] = owner
	}
	for _, req := range reqs {
		if last, ok := owner.released[req.GetTask()]; ok && req.GetClaim() <= last {
			continue
		}
		old := owner.tasks[req.GetTask()]
		switch {
		case old == nil:
			q.add(owner, req)
		case old.claim == req.GetClaim():
			q.repeat(old)
		case old.claim < req.GetClaim():
			q.remove(old)
			q.add(owner, req)
		}
	}
}

func (q *Queue) add(owner *run, req *v1.TaskRequest) {
	now := q.opts.Now()
	q.seq++
	r := &request{
		run:      owner,
		task:     req.GetTask(),
		claim:    req.GetClaim(),
		priority: req.GetPriority(),
		queuedAt: now,
		arrived:  now,
		timeout:  req.GetPlacementTimeout().AsDuration(),
		seq:      q.seq,
	}
	if t := req.GetQueuedAt(); t != nil {
		r.queuedAt = t.AsTime()
	}
	owner.tasks[r.task] = r
	r.class = q.classOf(owner.id, req)
	if delayOf(req.GetRefusals()) > 0 {
		q.delay(r, req.GetRefusals())
		return
	}
	q.enqueue(r)
}

// enqueue makes the next pass try to place a request.
func (q *Queue) enqueue(r *request) {
	// The class may have been dropped while the request was delayed.
	if s := q.classes[r.class.key]; s != nil {
		r.class = s
	} else {
		q.classes[r.class.key] = r.class
	}
	first := r.class.first()
	r.class.push(r)
	q.activate(r.class)
	q.noteFirst(r.class, first)
	if r.class.impossible {
		q.startTimeout(r)
	}
	q.asked = true
}

// Release releases claims that have ended, moved or are no longer needed. It frees what an assigned
// claim holds and drops a waiting one. It ignores claims that are unknown or were released before.
// The outcome of a claim also affects its node: a node that refused the task gets no requests for
// the same resources until its next snapshot, and a node that keeps failing is benched.
func (q *Queue) Release(runID string, claims []*v1.ClaimRef) {
	owner := q.runs[runID]
	for _, c := range claims {
		key := claimKey{run: runID, task: c.GetTask(), claim: c.GetClaim()}
		if n := q.releaseForeign(key); n != nil {
			q.settleNode(n, q.born, c.GetOutcome())
		}
		if owner == nil {
			continue
		}
		if last, ok := owner.released[key.task]; !ok || key.claim > last {
			owner.released[key.task] = key.claim
		}
		r := owner.tasks[key.task]
		if r == nil || r.claim > key.claim {
			continue
		}
		if r.claim == key.claim && r.state == assigned {
			q.noteOutcome(r, c.GetOutcome())
		}
		q.remove(r)
	}
}

// noteOutcome updates the node of an assigned request with the outcome of its claim.
func (q *Queue) noteOutcome(r *request, outcome string) {
	n := r.node
	q.settleNode(n, r.assignedAt, outcome)
	r.cutShort = outcome != "" && outcome != v1.OutcomeDone
	if outcome == v1.OutcomeRefused {
		if n.refused == nil {
			n.refused = map[string]struct{}{}
		}
		n.refused[r.class.ask] = struct{}{}
	}
}

// Forget releases everything that the run holds and drops all its waiting requests.
func (q *Queue) Forget(runID string) {
	owner := q.runs[runID]
	if owner == nil {
		return
	}
	for _, r := range owner.tasks {
		q.remove(r)
	}
	delete(q.reports, owner)
	delete(q.runs, runID)
}

// remove ends a request in any state.
func (q *Queue) remove(r *request) {
	switch r.state {
	case waiting:
		q.unqueue(r)
	case assigned:
		q.free(r)
	}
	r.state = gone
	delete(r.run.tasks, r.task)
}

// unqueue removes a waiting request from the queue.
func (q *Queue) unqueue(r *request) {
	if r.delayed != "" {
		heap.Remove(&q.delayed, r.index)
		return
	}
	s := r.class
	first := s.first()
	s.drop(r)
	q.noteFirst(s, first)
	if len(s.waiting) == 0 {
		q.retire(s)
	}
}

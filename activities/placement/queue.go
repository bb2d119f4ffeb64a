package placement

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Queue is the placement queue: the nodes, what has been given to them, and the
// requests that wait. It is not safe for concurrent use.
type Queue struct {
	opts       Options
	byName     []filter // what a node fails because of its name
	byKind     []filter // what it fails however idle it is
	capacities []filter // what it may meet another time

	nodes       map[string]*node
	listed      []*node // the present ones, by name
	all         pool    // the same, for request classes to start with
	numbered    []*node // by number
	layout      uint64  // changes when nodes and their classes get new numbers
	nodeClasses map[string]int
	scratch     []byte
	round       uint64 // number of the newest SetNodes
	machines    map[string]*machine
	uncounted   []*machine // whose nodes have changed
	foreign     map[claimKey]*node
	healths     map[string]*health // of nodes that fail, by name
	// suspicions counts, by node, the dispatches that were not picked up, or not started.
	suspicions map[string]int32
	born       time.Time

	runs    map[string]*run
	classes map[string]*requestClass
	active  []*requestClass // those for which something waits
	rests   uint64          // how often a request class became idle
	delayed delayHeap
	timed   map[*requestClass]struct{} // impossible request classes with a placement time-out running
	seq     uint64
	// expecting says that nodes are about to register.
	expecting bool

	now          time.Time // of the pass under way
	asked        bool      // there are requests that no pass has seen
	fleetChanged bool
	moved        bool              // room may have appeared since the last pass
	touched      changes           // nodes where it may have
	reshaped     changes           // nodes that are new, gone or of another class
	level        level             // of the pass under way
	reserved     []*node           // where something may not wait, for the sake of priority
	reordered    bool              // the highest priority in a request class has changed since they were reserved
	reports      map[*run]struct{} // runs that have something new
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

// Knows reports whether the run has made a request and has not been forgotten.
func (q *Queue) Knows(runID string) bool { return q.runs[runID] != nil }

// Runs returns the ids of the runs that the queue knows, sorted.
func (q *Queue) Runs() []string { return slices.Sorted(maps.Keys(q.runs)) }

// Request adds requests of a run. The same claim again changes nothing, and
// what is known of it is reported again at the next Take: its assignment, its
// reason or that it was given up. A newer claim of a task takes the place of
// the older one, which is released. A claim that is older than the newest, or
// has been released, is ignored, so that a late repetition does no harm.
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

// enqueue has the next pass try to place a request.
func (q *Queue) enqueue(r *request) {
	// The class may have been dropped while the request was put aside.
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

// Release takes back claims that have ended, are not wanted any more or have
// moved: room that they hold is free again, and one that waits is dropped.
// Claims that are not known, and claims released before, are ignored. How a
// claim ended says something of its node: one that refused the task gets nothing
// that takes as much until there is a newer snapshot of it, and one that keeps
// failing is benched.
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

// noteOutcome learns from how an assigned request ended.
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

// Forget releases all that the run holds and drops all that it waits for.
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

// remove ends a request in whatever state it is.
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

// unqueue takes a waiting request out of the queue.
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

package placement

import (
	"maps"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Options are the settings of a Queue. Only Epoch has no default.
type Options struct {
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Epoch is the identity of the queue, told to runs so that they notice
	// when another queue, which knows nothing of them, has taken over.
	Epoch string
	// Weights of the score; nil: DefaultWeights.
	Weights *Weights
	// AheadBelow is the mean length of a node's attempts below which its queue
	// is filled ahead; 0: 1 s.
	AheadBelow time.Duration
	// ReasonInterval is how long a reason stands before a change of its words
	// alone is told; it doubles with each such change, up to 5 minutes; 0: 2 s.
	ReasonInterval time.Duration
	// Settle is how long a released claim may still show up in snapshots
	// without counting as an attempt that somebody else has placed; 0: 10 s.
	Settle time.Duration
}

// longestReasonInterval bounds the doubling of ReasonInterval. Whatever a run
// is told adds events to its history, so one that waits for days must not be
// told of every MiB that comes and goes.
const longestReasonInterval = 5 * time.Minute

// WithDefaults returns the options with every default filled in.
func (o Options) WithDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Weights == nil {
		w := DefaultWeights()
		o.Weights = &w
	}
	if o.AheadBelow == 0 {
		o.AheadBelow = time.Second
	}
	if o.ReasonInterval == 0 {
		o.ReasonInterval = 2 * time.Second
	}
	if o.Settle == 0 {
		o.Settle = 10 * time.Second
	}
	return o
}

// Queue is the placement queue: the live nodes, what has been given to them,
// and the requests that wait. It is not safe for concurrent use.
type Queue struct {
	opts    Options
	filters []filter

	nodes    map[string]*node
	present  []*node // the live ones, by name
	machines map[string]*machine
	foreign  map[claimKey]*node

	runs   map[string]*run
	shapes map[string]*shape
	timed  map[*shape]struct{} // impossible shapes with a placement time-out running
	seq    uint64

	now          time.Time // of the pass under way
	asked        bool      // there are requests that no pass has seen
	fleetChanged bool
	freed        []*node           // where room has appeared since the last pass
	level        level             // of the pass under way
	keptBack     []*node           // where something may not wait, for the sake of priority
	reordered    bool              // the highest priority in a shape has changed since they were kept back
	news         map[*run]struct{} // runs that have something new
}

// New returns an empty queue without nodes.
func New(opts Options) *Queue {
	return &Queue{
		opts:     opts.WithDefaults(),
		filters:  filters(),
		nodes:    map[string]*node{},
		machines: map[string]*machine{},
		foreign:  map[claimKey]*node{},
		runs:     map[string]*run{},
		shapes:   map[string]*shape{},
		timed:    map[*shape]struct{}{},
		news:     map[*run]struct{}{},
	}
}

// Epoch returns the identity of the queue.
func (q *Queue) Epoch() string { return q.opts.Epoch }

// Knows tells whether the run has made a request and has not been forgotten.
func (q *Queue) Knows(runID string) bool { return q.runs[runID] != nil }

// Runs returns the ids of the runs that the queue knows, sorted.
func (q *Queue) Runs() []string { return slices.Sorted(maps.Keys(q.runs)) }

// Request adds requests of a run. The same claim again changes nothing, and
// what is known of it is told again at the next Take: its assignment, its
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
	r.shape = q.shapeOf(owner.id, req)
	first := r.shape.first()
	r.shape.push(r)
	q.noteFirst(r.shape, first)
	if r.shape.impossible {
		q.startTimeout(r)
	}
	q.asked = true
}

// Release takes back claims that have ended, are not wanted any more or have
// moved: room that they hold is free again, and one that waits is dropped.
// Claims that are not known, and claims released before, are ignored.
func (q *Queue) Release(runID string, claims []*v1.ClaimRef) {
	owner := q.runs[runID]
	for _, c := range claims {
		key := claimKey{run: runID, task: c.GetTask(), claim: c.GetClaim()}
		q.releaseForeign(key)
		if owner == nil {
			continue
		}
		if last, ok := owner.released[key.task]; !ok || key.claim > last {
			owner.released[key.task] = key.claim
		}
		if r := owner.tasks[key.task]; r != nil && r.claim <= key.claim {
			q.remove(r)
		}
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
	delete(q.news, owner)
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

// unqueue takes a waiting request out of its shape, and the shape out of the
// queue when it was the last.
func (q *Queue) unqueue(r *request) {
	s := r.shape
	first := s.first()
	s.drop(r)
	q.noteFirst(s, first)
	if len(s.waiting) == 0 {
		delete(q.shapes, s.key)
		delete(q.timed, s)
	}
}

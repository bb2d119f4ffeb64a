package placement

import (
	"cmp"
	"time"
)

type state int

const (
	waiting state = iota
	assigned
	givenUp
	gone
)

// Run identifies the sender of requests.
type Run struct {
	// ID is the id of the run, or of the child that handles a part of a fan-out of the run.
	ID string
	// Owner is who has submitted the run, or "" if unknown.
	Owner string
	// Workflow is the name of the run's definition. Tasks of the same name take about as long in all runs of a workflow.
	Workflow string
}

// run is the state that the queue keeps for a run.
type run struct {
	Run
	account  *account
	tasks    map[string]*request // newest request of each task
	released map[string]int32    // newest released claim of each task
	report   []*request          // requests with something new to report
}

// hasReleased reports whether a claim of a task, or a newer one, has been released.
func (r *run) hasReleased(task string, claim int32) bool {
	newest, ok := r.released[task]
	return ok && claim <= newest
}

// noteReleased records that a claim of a task has been released.
func (r *run) noteReleased(task string, claim int32) {
	if !r.hasReleased(task, claim) {
		r.released[task] = claim
	}
}

// request is one claim of a task, waiting or assigned.
type request struct {
	run      *run
	task     string
	claim    int32
	priority int32
	queuedAt time.Time
	arrived  time.Time // when this queue received it
	timeout  time.Duration
	limit    time.Duration // of an attempt, or 0 for none
	age      age
	class    *requestClass
	line     *line // of a waiting request that is not delayed
	index    int   // in line.requests, or in demand.delayed
	state    state
	fresh    bool // listed in requestClass.fresh
	listed   bool // listed in run.report
	due      time.Time
	delayed  string         // why it must wait until due, or "" if it need not
	verdict  string         // why it was given up
	reserved []*reservation // held for it, or for all members of its gang together

	// Of an assigned request.
	place claim
	why   reckoning
}

func (r *request) key() claimKey {
	return claimKey{run: r.run.ID, task: r.task, claim: r.claim}
}

// before orders requests by priority, then by age, then by arrival.
func (r *request) before(o *request) bool {
	if r.priority != o.priority {
		return r.priority > o.priority
	}
	return r.age.before(o.age)
}

// age is the rank of a request among those of its priority.
type age struct {
	queuedAt int64 // in nanoseconds
	seq      uint64
}

func (a age) before(b age) bool {
	return a.queuedAt < b.queuedAt || a.queuedAt == b.queuedAt && a.seq < b.seq
}

func (a age) compare(b age) int {
	if a.queuedAt != b.queuedAt {
		return cmp.Compare(a.queuedAt, b.queuedAt)
	}
	return cmp.Compare(a.seq, b.seq)
}

// requestHeap is a heap of requests in the order of before.
type requestHeap []*request

func (h requestHeap) Len() int           { return len(h) }
func (h requestHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h requestHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *requestHeap) Push(x any) {
	r := x.(*request)
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop implements heap.Interface.
func (h *requestHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}

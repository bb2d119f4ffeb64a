package placement

import (
	"cmp"
	"container/list"
	"time"
)

// claimKey names a dispatch of a task across runs.
type claimKey struct {
	run, task string
	claim     int32
}

type state int

const (
	waiting state = iota
	assigned
	givenUp
	gone
)

// run is what the queue knows of a run.
type run struct {
	id       string
	tasks    map[string]*request // newest request of each task
	released map[string]int32    // newest released claim of each task
	report   []*request          // requests with something new to report
}

// request is one claim of a task, waiting or placed.
type request struct {
	run      *run
	task     string
	claim    int32
	priority int32
	queuedAt time.Time
	arrived  time.Time // when this queue learned of it
	timeout  time.Duration
	seq      uint64
	class    *requestClass
	index    int // in requestClass.waiting, or in Queue.delayed
	state    state
	fresh    bool // in requestClass.fresh
	listed   bool // in run.report
	due      time.Time
	delayed  string // why it is not to be placed before due; empty: it may be
	verdict  string // of one that was given up: why

	// Of an assigned request.
	node       *node
	assignedAt time.Time
	grant      grant
	why        reckoning
	age        *list.Element // in node.byAge
	cutShort   bool          // how long it took says nothing of attempts
	seen       bool          // the node's snapshot lists it as running
}

func (r *request) key() claimKey {
	return claimKey{run: r.run.id, task: r.task, claim: r.claim}
}

// before is the order of the queue: urgency, then age, then order of arrival.
func (r *request) before(o *request) bool {
	return cmp.Or(
		cmp.Compare(o.priority, r.priority),
		r.queuedAt.Compare(o.queuedAt),
		cmp.Compare(r.seq, o.seq),
	) < 0
}

// requestHeap is a heap of requests in the order of the queue.
type requestHeap []*request

func (h requestHeap) Len() int           { return len(h) }
func (h requestHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h requestHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is part of heap.Interface.
func (h *requestHeap) Push(x any) {
	r := x.(*request)
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop is part of heap.Interface.
func (h *requestHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}

package placement

import (
	"container/heap"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// shape is a set of waiting requests that ask for exactly the same, so that
// what is found for one holds for all: when the first finds no node, no other
// does, and all have the same reason.
type shape struct {
	key         string
	taskType    string
	constraints *v1.Constraints
	need        need
	target      Target
	targetErr   error
	avoid       []string
	runID       string // the run, where a limit of its own makes the shape depend on it

	waiting    requestHeap
	fresh      []*request // not told a reason yet
	failed     bool       // found no node, and room has appeared nowhere but in Queue.freed
	candidates candidateHeap

	reason     string
	told       string // reason that all but the fresh were told
	impossible bool   // no present node could ever meet it
	since      time.Time
	deadline   time.Time // no request is given up before; zero: none ever
	tellAt     time.Time // earliest telling of a change of words
	tellEvery  time.Duration
}

// shapeOf returns the shape of a request, a new one when nothing like it waits.
func (q *Queue) shapeOf(runID string, req *v1.TaskRequest) *shape {
	if req.GetConstraints().GetMaxParallelPerNode() == 0 {
		runID = ""
	}
	key := shapeKey(runID, req)
	s := q.shapes[key]
	if s == nil {
		s = newShape(runID, req)
		s.key = key
		q.shapes[key] = s
	}
	return s
}

func newShape(runID string, req *v1.TaskRequest) *shape {
	target, err := ParseTarget(req.GetConstraints().GetTargetNode())
	return &shape{
		taskType:    req.GetType(),
		constraints: req.GetConstraints(),
		need:        needOf(req, target),
		target:      target,
		targetErr:   err,
		avoid:       req.GetAvoidNodes(),
		runID:       runID,
	}
}

// shapeKey is equal for requests that the same nodes fit. Requests that differ
// in the order of a list get two shapes, which costs time but is not wrong.
func shapeKey(runID string, req *v1.TaskRequest) string {
	// Marshalling these fields fails only for invalid UTF-8, which no payload can hold.
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte(runID+"\x00"), &v1.TaskRequest{
		Type:        req.GetType(),
		Constraints: req.GetConstraints(),
		Resources:   req.GetResources(),
		AvoidNodes:  req.GetAvoidNodes(),
	})
	if err != nil {
		return runID + "\x00" + req.String()
	}
	return string(b)
}

func (s *shape) push(r *request) {
	heap.Push(&s.waiting, r)
	s.freshen(r)
}

func (s *shape) drop(r *request) { heap.Remove(&s.waiting, r.index) }

// first is the most urgent of what waits, nil without any.
func (s *shape) first() *request {
	if len(s.waiting) == 0 {
		return nil
	}
	return s.waiting[0]
}

// freshen has the request told its reason, again if need be.
func (s *shape) freshen(r *request) {
	if !r.fresh {
		r.fresh = true
		s.fresh = append(s.fresh, r)
	}
}

func (s *shape) avoids(name string) bool { return slices.Contains(s.avoid, name) }

// shapeHeap is a heap of shapes, each represented by its first request.
type shapeHeap []*shape

func (h shapeHeap) Len() int           { return len(h) }
func (h shapeHeap) Less(i, j int) bool { return h[i].waiting[0].before(h[j].waiting[0]) }
func (h shapeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is part of heap.Interface.
func (h *shapeHeap) Push(x any) { *h = append(*h, x.(*shape)) }

// Pop is part of heap.Interface.
func (h *shapeHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}

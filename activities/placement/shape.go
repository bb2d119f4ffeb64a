package placement

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// shape is a set of waiting requests that ask for exactly the same, so that
// what is found for one holds for all: when the first finds no node, no other
// does, and all have the same reason. It is kept for a while when nothing waits
// any more, because the nodes that could ever meet it are costly to find.
type shape struct {
	key         string
	ask         string // the same for requests that take the same, whoever asks
	taskType    string
	constraints *v1.Constraints
	need        need
	container   *v1.ContainerNeeds // nil: nothing, or it is no container
	target      Target
	targetErr   error
	avoid       []string
	namesSome   bool   // it names nodes, wanted or not wanted
	runID       string // the run, where a limit of its own makes the shape depend on it

	waiting requestHeap
	fresh   []*request // not told a reason yet
	active  int        // index in Queue.active, or -1
	idle    uint64     // number of the time at which it became idle
	inOrder bool       // takes part in the pass under way

	// The nodes that may ever meet it, those to be left out if others will do apart.
	// Those that turn out not to are taken out when it comes to them.
	preferred, avoided pool
	kinds              []verdict // of the kinds of nodes, by number
	layout             uint64    // of the queue's node numbers that the pools are made for; 0: they are not made
	reshaped, touched  uint64    // how far it has read the queue's changes
	keptFrom           bool      // some node was kept back from it since it became active
	ranking            ranking

	reason     string
	reasonAt   time.Time
	told       string // reason that all but the fresh were told
	impossible bool   // no present node could ever meet it
	since      time.Time
	deadline   time.Time // no request is given up before; zero: none ever
	tellAt     time.Time // earliest telling of a change of words
	tellEvery  time.Duration
}

// shapeOf returns the shape of a request, a new one when there is nothing like it.
func (q *Queue) shapeOf(runID string, req *v1.TaskRequest) *shape {
	ask, key := shapeKeys(runID, req)
	s := q.shapes[key]
	if s == nil {
		s = newShape(runID, req)
		s.ask, s.key = ask, key
		q.shapes[key] = s
	}
	return s
}

func newShape(runID string, req *v1.TaskRequest) *shape {
	c := req.GetConstraints()
	target, err := ParseTarget(c.GetTargetNode())
	return &shape{
		taskType:    req.GetType(),
		constraints: c,
		namesSome:   c.GetTargetNode() != "" || len(c.GetAllowedNodes())+len(c.GetForbiddenNodes()) > 0,
		need:        needOf(req, target),
		container:   req.GetContainer(),
		target:      target,
		targetErr:   err,
		avoid:       req.GetAvoidNodes(),
		runID:       runID,
		active:      -1,
	}
}

// shapeKeys returns a key that is equal for requests that take the same, and one
// that is equal for requests that the same nodes fit. Requests that differ
// in the order of a list get two shapes, which costs time but is not wrong.
func shapeKeys(runID string, req *v1.TaskRequest) (ask, key string) {
	// Marshalling these fields fails only for invalid UTF-8, which no payload can hold.
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&v1.TaskRequest{
		Type:        req.GetType(),
		Constraints: req.GetConstraints(),
		Resources:   req.GetResources(),
		Container:   req.GetContainer(),
	})
	if err != nil {
		b = []byte(req.String())
	}
	if req.GetConstraints().GetMaxParallelPerNode() == 0 {
		runID = ""
	}
	ask = string(b)
	if runID == "" && len(req.GetAvoidNodes()) == 0 {
		return ask, ask
	}
	return ask, ask + "\x00" + runID + "\x00" + strings.Join(req.GetAvoidNodes(), "\x00")
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

// namesAll reports whether the shape may ask for any node.
func (s *shape) namesAll() bool {
	return s.targetErr == nil && s.target.Node == "" && len(s.constraints.GetAllowedNodes()) == 0
}

// names reports whether the shape may ask for a node of the name.
func (s *shape) names(name string) bool {
	allowed := s.constraints.GetAllowedNodes()
	return s.targetErr == nil && (s.target.Node == "" || s.target.Node == name) &&
		(len(allowed) == 0 || slices.Contains(allowed, name))
}

// possible reports whether any node could ever meet the shape, once all have been
// looked at.
func (s *shape) possible() bool { return len(s.preferred.nodes)+len(s.avoided.nodes) > 0 }

// mayFit reports whether any node is not known to have no room.
func (s *shape) mayFit() bool { return s.preferred.open+s.avoided.open > 0 }

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

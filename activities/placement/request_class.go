package placement

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// requestClass is a set of waiting requests that ask for exactly the same, so that
// what is found for one holds for all: when the first finds no node, no other
// does, and all have the same reason. It is kept for a while when nothing waits
// any more, because the nodes that could ever meet it are costly to find.
type requestClass struct {
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
	runID       string // the run, where a limit of its own makes the class depend on it

	waiting requestHeap
	fresh   []*request // without a reported reason yet
	active  int        // index in Queue.active, or -1
	idle    uint64     // number of the time at which it became idle
	inOrder bool       // takes part in the pass under way

	// The nodes that may ever meet it, those to be left out if others will do apart.
	// Those that turn out not to are taken out when it comes to them.
	preferred, avoided pool
	nodeClasses        []verdict // of the node classes, by number
	layout             uint64    // of the queue's node numbers that the pools are made for; 0: they are not made
	reshaped, touched  uint64    // how far it has read the queue's changes
	reservedFrom       bool      // some node was reserved from it since it became active
	ranking            ranking

	reason      string
	reasonAt    time.Time
	reported    string // reason that was reported to all but the fresh ones
	impossible  bool   // no present node could ever meet it
	since       time.Time
	deadline    time.Time // no request is given up before; zero: none ever
	reportAt    time.Time // earliest report of a change of words
	reportEvery time.Duration
}

// classOf returns the class of a request, a new one when there is nothing like it.
func (q *Queue) classOf(runID string, req *v1.TaskRequest) *requestClass {
	ask, key := classKeys(runID, req)
	s := q.classes[key]
	if s == nil {
		s = newRequestClass(runID, req)
		s.ask, s.key = ask, key
		q.classes[key] = s
	}
	return s
}

func newRequestClass(runID string, req *v1.TaskRequest) *requestClass {
	c := req.GetConstraints()
	target, err := ParseTarget(c.GetTargetNode())
	return &requestClass{
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

// classKeys returns a key that is equal for requests that take the same, and one
// that is equal for requests that the same nodes fit. Requests that differ
// in the order of a list get two request classes, which costs time but is not wrong.
func classKeys(runID string, req *v1.TaskRequest) (ask, key string) {
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

func (s *requestClass) push(r *request) {
	heap.Push(&s.waiting, r)
	s.freshen(r)
}

func (s *requestClass) drop(r *request) { heap.Remove(&s.waiting, r.index) }

// first is the most urgent of what waits, nil without any.
func (s *requestClass) first() *request {
	if len(s.waiting) == 0 {
		return nil
	}
	return s.waiting[0]
}

// freshen makes the request's reason be reported, again if need be.
func (s *requestClass) freshen(r *request) {
	if !r.fresh {
		r.fresh = true
		s.fresh = append(s.fresh, r)
	}
}

func (s *requestClass) avoids(name string) bool { return slices.Contains(s.avoid, name) }

// namesAll reports whether the class may ask for any node.
func (s *requestClass) namesAll() bool {
	return s.targetErr == nil && s.target.Node == "" && len(s.constraints.GetAllowedNodes()) == 0
}

// names reports whether the class may ask for a node of the name.
func (s *requestClass) names(name string) bool {
	allowed := s.constraints.GetAllowedNodes()
	return s.targetErr == nil && (s.target.Node == "" || s.target.Node == name) &&
		(len(allowed) == 0 || slices.Contains(allowed, name))
}

// possible reports whether any node could ever meet the class, once all have been
// looked at.
func (s *requestClass) possible() bool { return len(s.preferred.nodes)+len(s.avoided.nodes) > 0 }

// mayFit reports whether any node is not known to have no room.
func (s *requestClass) mayFit() bool { return s.preferred.open+s.avoided.open > 0 }

// classHeap is a heap of request classes, each represented by its first request.
type classHeap []*requestClass

func (h classHeap) Len() int           { return len(h) }
func (h classHeap) Less(i, j int) bool { return h[i].waiting[0].before(h[j].waiting[0]) }
func (h classHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is part of heap.Interface.
func (h *classHeap) Push(x any) { *h = append(*h, x.(*requestClass)) }

// Pop is part of heap.Interface.
func (h *classHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}

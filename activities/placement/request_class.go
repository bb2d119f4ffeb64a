package placement

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// requestClass is a set of waiting requests that ask for exactly the same, so that the result for
// one request holds for all: if the first request finds no node, neither does any other, and all
// have the same reason. The queue keeps a class for a while after its last request, because finding
// the nodes that could ever run it is costly.
type requestClass struct {
	key         string
	ask         string // equal for requests for the same resources, whichever run makes them
	taskType    string
	constraints *v1.Constraints
	need        need
	container   *v1.ContainerNeeds // nil if the request has no container needs
	target      Target
	targetErr   error
	avoid       []string
	namesSome   bool   // the constraints name nodes, required or forbidden
	runID       string // used for the limit of tasks per run and node

	waiting requestHeap
	fresh   []*request // requests without a reported reason
	active  int        // index in Queue.active, or -1
	idle    uint64     // value of Queue.rests when the class became idle
	inOrder bool       // in the heap of the current pass

	// preferred and avoided hold the nodes that could ever run the class. A node in avoided is used
	// only if no preferred node is available. A node that turns out never to fit is removed when a
	// pass reaches it.
	preferred, avoided pool
	nodeClasses        []verdict // of the node classes, by number
	layout             uint64    // value of Queue.layout for which the pools were built; 0 means not built
	reshaped, touched  uint64    // positions in the queue's logs of changes up to which the class has read
	reservedFrom       bool      // some node was reserved from the class since it became active
	ranking            ranking

	reason      string
	reasonAt    time.Time
	reported    string // reason that was reported to all requests except the fresh ones
	impossible  bool   // no present node could ever run it
	since       time.Time
	deadline    time.Time // no request is given up before it; zero means no time-out
	reportAt    time.Time // earliest report of a change of wording
	reportEvery time.Duration
}

// classOf returns the class of a request, which it creates if necessary.
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

// classKeys returns two keys: ask is equal for requests for the same resources, key for requests
// that fit the same nodes. Requests that differ only in the order of a list get different keys,
// which costs time but is correct.
func classKeys(runID string, req *v1.TaskRequest) (ask, key string) {
	// Marshalling these fields fails only for invalid UTF-8, which a payload cannot contain.
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

// first returns the most urgent waiting request, or nil if none waits.
func (s *requestClass) first() *request {
	if len(s.waiting) == 0 {
		return nil
	}
	return s.waiting[0]
}

// freshen makes the next pass report the request's reason, even if it was reported before.
func (s *requestClass) freshen(r *request) {
	if !r.fresh {
		r.fresh = true
		s.fresh = append(s.fresh, r)
	}
}

func (s *requestClass) avoids(name string) bool { return slices.Contains(s.avoid, name) }

// namesAll reports whether the class may use any node by name.
func (s *requestClass) namesAll() bool {
	return s.targetErr == nil && s.target.Node == "" && len(s.constraints.GetAllowedNodes()) == 0
}

// names reports whether the class may use a node of the given name.
func (s *requestClass) names(name string) bool {
	allowed := s.constraints.GetAllowedNodes()
	return s.targetErr == nil && (s.target.Node == "" || s.target.Node == name) &&
		(len(allowed) == 0 || slices.Contains(allowed, name))
}

// possible reports whether any present node could ever run the class. It is valid after all nodes
// have been evaluated.
func (s *requestClass) possible() bool { return len(s.preferred.nodes)+len(s.avoided.nodes) > 0 }

// mayFit reports whether some node is not known to be full.
func (s *requestClass) mayFit() bool { return s.preferred.open+s.avoided.open > 0 }

// classHeap is a heap of request classes, each ordered by its first request.
type classHeap []*requestClass

func (h classHeap) Len() int           { return len(h) }
func (h classHeap) Less(i, j int) bool { return h[i].waiting[0].before(h[j].waiting[0]) }
func (h classHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *classHeap) Push(x any) { *h = append(*h, x.(*requestClass)) }

// Pop implements heap.Interface.
func (h *classHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}

package placement

import "container/heap"

// requestClass is a set of waiting requests that ask for exactly the same, so that the result for
// one request holds for all: if the first request finds no node, neither does any other, and all
// have the same reason. The queue keeps a class for a while after its last request, because finding
// the nodes that could ever run it is costly.
type requestClass struct {
	spec
	key       string
	waiting   requestHeap
	fresh     []*request // requests without a reported reason
	active    int        // index in requestClasses.active, or -1
	idleSince uint64     // value of requestClasses.retirements when the class became idle
	inOrder   bool       // in the heap of the current pass
	prospects prospects
	notice    notice
	timeout   classTimeout
}

func newRequestClass(key string, s spec) *requestClass {
	return &requestClass{spec: s, key: key, active: -1}
}

func (s *requestClass) push(r *request) {
	heap.Push(&s.waiting, r)
	s.freshen(r)
}

// pop removes the most urgent waiting request.
func (s *requestClass) pop() *request { return heap.Pop(&s.waiting).(*request) }

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

// takeFresh returns the requests without a reported reason and marks them as reported.
func (s *requestClass) takeFresh() []*request {
	fresh := s.fresh
	for _, r := range fresh {
		r.fresh = false
	}
	s.fresh = nil
	return fresh
}

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

// popFirst removes the first class from the heap. The heap must not compare a request class that
// has no waiting request, so popFirst does not look at that class.
func (h *classHeap) popFirst() {
	last := len(*h) - 1
	h.Swap(0, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if last > 0 {
		heap.Fix(h, 0)
	}
}

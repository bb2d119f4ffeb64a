package pending

import "go.temporal.io/sdk/workflow"

// Set holds the futures that a workflow waits for, each with a callback. The zero Set is empty.
type Set struct {
	futures []watched
}

type watched struct {
	future  workflow.Future
	onReady func(workflow.Future)
}

// Watch adds a future. Settle calls onReady with it once it is ready.
func (s *Set) Watch(future workflow.Future, onReady func(workflow.Future)) {
	s.futures = append(s.futures, watched{future, onReady})
}

// IsEmpty reports whether there are no futures.
func (s *Set) IsEmpty() bool { return len(s.futures) == 0 }

// HasReady reports whether any future is ready.
func (s *Set) HasReady() bool {
	for i := range s.futures {
		if s.futures[i].future.IsReady() {
			return true
		}
	}
	return false
}

// Settle removes the ready futures and calls their callbacks in the order in which they were added. Futures that a callback
// adds are left for the next Settle.
func (s *Set) Settle() {
	watched := s.futures
	s.futures = nil
	for i, w := range watched {
		if w.future.IsReady() {
			watched[i].onReady(w.future)
		} else {
			s.futures = append(s.futures, w)
		}
	}
}

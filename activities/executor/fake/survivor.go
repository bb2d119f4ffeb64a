package fake

import (
	"context"
	"slices"
	"sync"

	"switchyard/activities/executor"
)

// Survivor is an Executor with attempts that an earlier worker has left: the script says
// how they continue. Its methods may be called from several goroutines.
type Survivor struct {
	*Executor

	mu      sync.Mutex
	left    []executor.Leftover
	err     error
	removed []string
}

var _ executor.Survivor = (*Survivor)(nil)

// NewSurvivor returns one with what is left.
func NewSurvivor(taskType string, script map[string][]Step, left ...executor.Leftover) *Survivor {
	return &Survivor{Executor: New(taskType, script), left: left}
}

// Survivors are the attempts of the node that are left.
func (s *Survivor) Survivors(_ context.Context, node string) ([]executor.Leftover, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	return slices.DeleteFunc(slices.Clone(s.left), func(l executor.Leftover) bool { return l.Identity.Node != node }), nil
}

// Away has Survivors fail; nil: it does not any more.
func (s *Survivor) Away(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Forget takes the variables of the programs that are left away.
func (s *Survivor) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.left {
		s.left[i].Env = nil
	}
}

// Reattach does the next step of the attempt's task.
func (s *Survivor) Reattach(ctx context.Context, a executor.Attempt) (executor.Result, error) {
	if !s.Lose(a.ID) {
		return executor.Result{}, executor.ErrNotRunning
	}
	return s.Run(ctx, a, func() {})
}

// Remove notes that an attempt was removed.
func (s *Survivor) Remove(_ context.Context, l executor.Leftover) error {
	s.Lose(l.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = append(s.removed, l.ID)
	return nil
}

// Removed are the ids of the attempts that were.
func (s *Survivor) Removed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.removed)
}

// Lose takes an attempt off what is left; false: it is not there.
func (s *Survivor) Lose(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.left)
	s.left = slices.DeleteFunc(s.left, func(l executor.Leftover) bool { return l.ID == id })
	return len(s.left) < before
}

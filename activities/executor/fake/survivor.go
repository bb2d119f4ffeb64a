package fake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"switchyard/activities/executor"
)

// Survivor is an Executor with attempts that an earlier worker left. Its script
// describes how they continue. Its methods are safe for concurrent use.
type Survivor struct {
	*Executor
	// Leaves is set before the first call if attempts outlive only a worker that leaves them. Each step then prints what its attempt
	// has not printed before.
	Leaves bool

	mu      sync.Mutex
	left    []executor.Leftover
	err     error
	removed []string
	killed  []string
}

// NewSurvivor returns a Survivor with the attempts in left.
func NewSurvivor(taskType string, script map[string][]Step, left ...executor.Leftover) *Survivor {
	return &Survivor{Executor: New(taskType, script), left: left}
}

// Capabilities says that attempts can be suspended and outlive the worker.
func (s *Survivor) Capabilities() executor.Capabilities {
	if s.Leaves {
		return executor.Capabilities{Steer: s, Leave: s, EndLeftover: func(ctx context.Context, id string) error {
			return s.Remove(ctx, executor.Leftover{ID: id})
		}}
	}
	return executor.Capabilities{Steer: s, Survive: s}
}

// CanLeave returns nil if an attempt runs.
func (s *Survivor) CanLeave(id string) error {
	s.Executor.mu.Lock()
	defer s.Executor.mu.Unlock()
	if _, runs := s.paused[id]; !runs {
		return executor.ErrNotRunning
	}
	return nil
}

// Survivors returns the remaining attempts of a node.
func (s *Survivor) Survivors(_ context.Context, node string) ([]executor.Leftover, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	return slices.DeleteFunc(slices.Clone(s.left), func(l executor.Leftover) bool { return l.Identity.Node != node }), nil
}

// FailSurvivors makes Survivors and Remove fail with an error, or work again if err is nil.
func (s *Survivor) FailSurvivors(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// ForgetEnv removes the environment variables of the attempts that are left.
func (s *Survivor) ForgetEnv() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.left {
		s.left[i].Env = nil
	}
}

// Run runs the next step of the attempt's task. An attempt that is left to a later worker is among the survivors.
func (s *Survivor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	var startedAt time.Time
	r, err := s.Executor.Run(ctx, a, func() { startedAt = time.Now(); spawned() })
	if r.Stopped && !startedAt.IsZero() && errors.Is(context.Cause(ctx), executor.ErrLetGo) {
		l := executor.Leftover{ID: a.ID, Identity: a.Identity, Running: true, StartedAt: startedAt, Env: a.Env}
		if s.Leaves {
			if l.Held, err = a.Held(); err != nil {
				return r, err
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = append(s.left, l)
	}
	return r, err
}

// Reattach runs the next step of the attempt's task.
func (s *Survivor) Reattach(ctx context.Context, a executor.Attempt) (executor.Result, error) {
	if !s.DropLeftover(a.ID) {
		return executor.Result{}, executor.ErrNotRunning
	}
	return s.Run(ctx, a, func() {})
}

// Remove records that an attempt was removed. While Survivors fails, or if ctx has ended, Remove fails and only records the
// container that it would kill.
func (s *Survivor) Remove(ctx context.Context, l executor.Leftover) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(s.err, ctx.Err()); err != nil {
		s.killed = append(s.killed, l.Workload.GetContainer())
		return err
	}
	s.dropLeftover(l.ID)
	s.removed = append(s.removed, l.ID)
	return nil
}

// Killed returns the containers of the attempts that Remove would have killed while Survivors failed.
func (s *Survivor) Killed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.killed)
}

// Removed returns the ids of the removed attempts.
func (s *Survivor) Removed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.removed)
}

// DropLeftover drops an attempt from those that are left. It returns false if there is no such
// attempt.
func (s *Survivor) DropLeftover(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropLeftover(id)
}

func (s *Survivor) dropLeftover(id string) bool {
	before := len(s.left)
	s.left = slices.DeleteFunc(s.left, func(l executor.Leftover) bool { return l.ID == id })
	return len(s.left) < before
}

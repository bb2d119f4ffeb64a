package dag

import v1 "switchyard/proto/switchyard/v1"

// A RestoreOption gives Restore state that the records do not hold.
type RestoreOption func(*State)

// WithCancelled restores State.Cancelled.
func WithCancelled(cancelled bool) RestoreOption {
	return func(s *State) { s.cancelled = cancelled }
}

// WithAborted restores State.Aborted.
func WithAborted(abort Abort) RestoreOption {
	return func(s *State) {
		s.aborted = abort
		s.cancelled = s.cancelled || abort.State != ""
	}
}

// WithFirstFailure restores State.FirstFailure. Without it, or if that task did not fail the run, Restore takes the failed task
// with the lowest index.
func WithFirstFailure(task int) RestoreOption {
	return func(s *State) { s.first = task }
}

// WithExpansion restores the expansion of a task as returned by State.Expansion. The records of the instances, unless they are
// partitioned, follow those of the tasks and of earlier expansions. An impossible expansion is ignored.
func WithExpansion(task, from, count int, remote bool) RestoreOption {
	return func(s *State) {
		if task < 0 || task >= s.graph.Len() || !s.graph.FansOut(task) || s.expansion(task) != nil || count <= 0 {
			return
		}
		s.addGroup(group{task: task, first: s.graph.Len() + len(s.owner), from: from, count: count, partitioned: remote})
	}
}

// Restore returns a state that continues from records, by index, such as those of State.Records. Missing records at the end are
// pending. Restore returns no decisions; State.Start returns those that are due. Claims that were open stay open.
func Restore(g *Graph, tasks []Record, options ...RestoreOption) *State {
	s := &State{
		graph:    g,
		progress: make([]progress, g.Len()),
		counts:   make(map[string]int),
		first:    -1,
	}
	for _, option := range options {
		option(s)
	}
	s.tasks = make([]Record, g.Len()+len(s.owner))
	copy(s.tasks, tasks)
	for i := range s.tasks {
		s.tasks[i] = s.complete(i)
	}
	s.derive()
	return s
}

// derive recomputes everything that follows from the records. It keeps the first failure if that is still a failure.
func (s *State) derive() {
	clear(s.counts)
	for i := range s.tasks {
		s.counts[s.tasks[i].State]++
	}
	for k := range s.groups {
		s.deriveGroup(&s.groups[k])
	}
	s.remaining, s.failures = len(s.progress), 0
	lowest := -1
	for i := range s.progress {
		p := &s.progress[i]
		*p = progress{open: int32(len(s.graph.nodes[i].parents)), asked: p.asked, group: p.group}
		for _, parent := range s.graph.nodes[i].parents {
			if s.isSettled(parent) {
				p.learn(s.progress[parent].effect)
			}
		}
		// A question that was asked under parents that continue after all is asked again when they have ended.
		if p.open > 0 || s.tasks[i].State != v1.TaskPending {
			p.asked = nothing
		}
		if !v1.IsTaskTerminal(s.tasks[i].State) {
			continue
		}
		s.remaining--
		p.effect = s.effectOf(i)
		if s.failsRun(i) {
			s.failures++
			if lowest < 0 {
				lowest = i
			}
		}
	}
	if s.first < 0 || s.first >= len(s.progress) || !s.failsRun(s.first) {
		s.first = lowest
	}
}

// deriveGroup recomputes everything that follows from the records of a group's instances.
func (s *State) deriveGroup(g *group) {
	if g.partitioned {
		return
	}
	clear(g.counts)
	g.open, g.failed = 0, 0
	for i := g.first; i < g.first+g.count; i++ {
		rec := &s.tasks[i]
		g.counts[rec.State]++
		if !v1.IsTaskTerminal(rec.State) {
			g.open++
		}
		if failedInstance(*rec) {
			g.failed++
		}
	}
}

// isSettled reports whether a task and all its ancestors have ended.
func (s *State) isSettled(i int) bool {
	return s.progress[i].open == 0 && v1.IsTaskTerminal(s.tasks[i].State)
}

// complete returns the record of i with its optional fields filled in.
func (s *State) complete(i int) Record {
	rec := s.tasks[i]
	if rec.State == "" {
		rec.State, rec.ExitCode = v1.TaskPending, -1
	}
	if rec.State != v1.TaskQueued {
		rec.Backoff = false
	}
	if rec.Attempt > 0 && rec.Failure.State == "" && !v1.IsTaskTerminal(rec.State) {
		rec.Failure = Failure{State: v1.TaskFailed, Reason: rec.Reason, Error: rec.Error}
	}
	switch g := s.groupOf(i); {
	case g == nil:
		if s.graph.FansOut(i) && s.expansion(i) == nil && !v1.IsTaskTerminal(rec.State) {
			rec.State = v1.TaskPending // its instances are no longer known
		}
	case v1.IsTaskTerminal(s.tasks[g.task].State) && !v1.IsTaskTerminal(rec.State):
		// Its task has ended without it.
		rec.State, rec.Reason, rec.Backoff, rec.PendingEnd, rec.Failure = v1.TaskCancelled, v1.ReasonRunCancelled, false, false, Failure{}
	}
	return rec
}

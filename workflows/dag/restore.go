package dag

// A RestoreOption tells Restore what the records do not hold.
type RestoreOption func(*State)

// WithCancelled goes on with a run whose State.Cancelled was so.
func WithCancelled(cancelled bool) RestoreOption {
	return func(s *State) { s.cancelled = cancelled }
}

// WithFirstFailure goes on with a run whose State.FirstFailure was this one.
// Without it, or when that task did not fail the run, the one with the lowest
// index that did is taken.
func WithFirstFailure(task int) RestoreOption {
	return func(s *State) { s.first = task }
}

// Restore returns a state that goes on from records, by index, such as those of
// State.Records; missing ones at the end are pending. It gives no decisions:
// State.Start gives those that are owed. Claims that were open before still are.
func Restore(g *Graph, tasks []Record, options ...RestoreOption) *State {
	s := &State{
		graph:    g,
		tasks:    make([]Record, g.Len()),
		progress: make([]progress, g.Len()),
		counts:   make(map[string]int),
		first:    -1,
	}
	for _, option := range options {
		option(s)
	}
	copy(s.tasks, tasks)
	for i := range s.tasks {
		s.tasks[i] = complete(s.tasks[i])
	}
	s.derive()
	return s
}

// derive works out anew all that follows from the records. The first failure
// stays as it is if it still is one.
func (s *State) derive() {
	clear(s.counts)
	s.remaining, s.failures = len(s.tasks), 0
	lowest := -1
	for i := range s.tasks {
		s.counts[s.tasks[i].State]++
		p := &s.progress[i]
		*p = progress{open: int32(len(s.graph.nodes[i].parents)), evaluating: p.evaluating}
		for _, parent := range s.graph.nodes[i].parents {
			if s.isSettled(parent) {
				p.learn(s.progress[parent].effect)
			}
		}
		// A condition that was asked for under parents that go on after all is asked
		// for again when they have ended.
		p.evaluating = p.evaluating && p.open == 0 && s.tasks[i].State == StatePending
		if !Terminal(s.tasks[i].State) {
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
	if !s.has(s.first) || !s.failsRun(s.first) {
		s.first = lowest
	}
}

// isSettled says whether a task and all its ancestors have ended.
func (s *State) isSettled(i int) bool {
	return s.progress[i].open == 0 && Terminal(s.tasks[i].State)
}

// complete fills in what a record may leave out.
func complete(rec Record) Record {
	if rec.State == "" {
		rec.State, rec.ExitCode = StatePending, -1
	}
	if rec.State != StateQueued {
		rec.Backoff = false
	}
	if rec.Attempt > 0 && rec.Failure.State == "" && !Terminal(rec.State) {
		rec.Failure = Failure{State: StateFailed, Reason: rec.Reason, Error: rec.Error}
	}
	return rec
}

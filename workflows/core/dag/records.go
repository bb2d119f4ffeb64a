package dag

import v1 "switchyard/proto/switchyard/v1"

// records holds the records of tasks, then of instances, and collects what has changed in a call. All parts of a State share
// it.
type records struct {
	groupTable
	tasks  []Record
	counts map[string]int // tasks and instances by state, without zeros
	round  round
}

func newRecords(g *Graph) *records {
	return &records{groupTable: groupTable{graph: g, byTask: make([]int32, g.Len())}, counts: make(map[string]int)}
}

func (r *records) has(i int) bool { return i >= 0 && i < len(r.tasks) }

// isRequested reports whether the task waits for a node.
func (r *records) isRequested(i int) bool {
	return r.tasks[i].State == v1.TaskQueued && !r.tasks[i].Backoff
}

// waits reports whether a task or instance has neither started nor ended.
func (r *records) waits(i int) bool {
	return v1.IsTaskWaiting(r.tasks[i].State)
}

// isDispatched reports whether a node runs the task, or other workflows run its instances.
func (r *records) isDispatched(i int) bool {
	if !v1.IsTaskDispatched(r.tasks[i].State) {
		return false
	}
	return r.instances(i) == nil
}

// isRequestedAs reports whether i waits for a node under a claim.
func (r *records) isRequestedAs(i int, claim int32) bool {
	return r.has(i) && r.tasks[i].Claim == claim && r.isRequested(i)
}

// isDispatchedAs reports whether i is dispatched under a claim.
func (r *records) isDispatchedAs(i int, claim int32) bool {
	return r.has(i) && r.tasks[i].Claim == claim && r.isDispatched(i)
}

// set replaces the record of a task or instance.
func (r *records) set(i int, rec Record) {
	if rec == r.tasks[i] {
		return
	}
	count(r.counts, r.tasks[i].State, rec.State)
	if g := r.groupOf(i); g != nil {
		count(g.counts, r.tasks[i].State, rec.State)
	}
	r.tasks[i] = rec
	r.round.changed = append(r.round.changed, i)
}

// count moves one unit from a state to another.
func count(counts map[string]int, from, to string) {
	if counts[from]--; counts[from] == 0 {
		delete(counts, from)
	}
	counts[to]++
}

// withdraw withdraws the request for a node, if there is one.
func (r *records) withdraw(i int) {
	if r.isRequested(i) {
		r.round.withdraw = append(r.round.withdraw, i)
	}
}

// complete returns the record of i with its optional fields filled in.
func (r *records) complete(i int) Record {
	rec := r.tasks[i]
	if rec.State == "" {
		rec.State, rec.ExitCode = v1.TaskPending, -1
	}
	if rec.State != v1.TaskQueued {
		rec.Backoff = false
	}
	if rec.Attempt > 0 && rec.Failure.State == "" && !v1.IsTaskTerminal(rec.State) {
		rec.Failure = Failure{State: v1.TaskFailed, Reason: rec.Reason, Error: rec.Error}
	}
	switch g := r.groupOf(i); {
	case g == nil:
		if r.graph.FansOut(i) && r.expansion(i) == nil && !v1.IsTaskTerminal(rec.State) {
			rec.State = v1.TaskPending // its instances are no longer known
		}
	case v1.IsTaskTerminal(r.tasks[g.task].State) && !v1.IsTaskTerminal(rec.State):
		// Its task has ended without it.
		rec.State, rec.Reason, rec.Backoff, rec.PendingEnd, rec.Failure = v1.TaskCancelled, v1.ReasonRunCancelled, false, false, Failure{}
	}
	return rec
}

// restore takes over records, by index. Missing ones at the end are pending.
func (r *records) restore(tasks []Record) {
	r.tasks = make([]Record, r.graph.Len()+len(r.owner))
	copy(r.tasks, tasks)
	for i := range r.tasks {
		r.tasks[i] = r.complete(i)
	}
}

// derive recomputes the counts of the run and of its groups.
func (r *records) derive() {
	clear(r.counts)
	for i := range r.tasks {
		r.counts[r.tasks[i].State]++
	}
	for k := range r.groups {
		r.deriveGroup(&r.groups[k])
	}
}

// deriveGroup recomputes everything that follows from the records of a group's instances.
func (r *records) deriveGroup(g *group) {
	if g.partitioned {
		return
	}
	clear(g.counts)
	g.open, g.failed = 0, 0
	for i := g.first; i < g.first+g.count; i++ {
		rec := &r.tasks[i]
		g.counts[rec.State]++
		if !v1.IsTaskTerminal(rec.State) {
			g.open++
		}
		if failedInstance(*rec) {
			g.failed++
		}
	}
}

// fresh returns the record of a task or instance that is rerun.
func (r *records) fresh(i int, retried bool) Record {
	return Record{State: v1.TaskPending, Claim: r.tasks[i].Claim, ExitCode: -1, Retried: retried}
}

// reset makes a task or instance pending as if it had never begun. Partitioned instances are dropped.
func (r *records) reset(i int) {
	if r.isPartitioned(i) {
		r.byTask[i] = 0
	}
	r.set(i, r.fresh(i, false))
}

// resetSkipped makes the instances of a task pending again that were skipped for a reason. An empty reason matches any.
func (r *records) resetSkipped(task int, reason string) {
	g := r.instances(task)
	if g == nil {
		return
	}
	for i := g.first; i < g.first+g.count; i++ {
		if rec := &r.tasks[i]; rec.State == v1.TaskSkipped && (reason == "" || rec.Reason == reason) {
			r.reset(i)
		}
	}
}

// forget removes the instances of tasks from the state. Their claims are carried over to the task, so that none is used twice.
// Derived data is stale afterwards.
func (r *records) forget(tasks []bool) {
	old := r.groups
	records := r.tasks
	r.groups, r.owner, r.tasks = nil, nil, records[:r.graph.Len():r.graph.Len()]
	for _, g := range old {
		instances := records[g.first:]
		if g.partitioned {
			instances = nil
		} else {
			instances = instances[:g.count]
		}
		if !tasks[g.task] {
			g.first = len(r.tasks)
			r.add(g)
			r.tasks = append(r.tasks, instances...)
			continue
		}
		r.byTask[g.task] = 0
		for _, rec := range instances {
			r.tasks[g.task].Claim = max(r.tasks[g.task].Claim, rec.Claim)
		}
	}
}

// skipInstances skips the open instances of a task that fanned out before and does not start now.
func (r *records) skipInstances(task int, reason, text string) {
	g := r.instances(task)
	g.open = 0
	for i := g.first; i < g.first+g.count; i++ {
		if rec := r.tasks[i]; !v1.IsTaskTerminal(rec.State) {
			rec = Record{State: v1.TaskSkipped, Reason: reason, Error: text, Claim: rec.Claim, ExitCode: -1}
			r.set(i, rec)
		}
	}
}

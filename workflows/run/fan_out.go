package run

import (
	"cmp"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/status"
)

const (
	// batchedPartitions is the factor by which partitions are larger if their instances run in batches.
	batchedPartitions = 10
	// partitionsAtOnce is the most partitions of a fan-out that are open at the same time.
	partitionsAtOnce = 8
	// claimsOfGeneration is the number of claims reserved for the instances of partitions in each generation of a run, because
	// the run cannot tell how many of them were used.
	claimsOfGeneration = 10_000
)

// partitionedFanOut is a fan-out that is too large for the run. FanOut children run its partitions, a bounded number at a time,
// and report to the run.
type partitionedFanOut struct {
	task       int
	total      int
	partitions []*v1.PartitionReport // the newest report of each partition that was opened or is kept, in order
	// before holds the partitions of the previous generation, whose completed instances are kept.
	before []*v1.PartitionReport
	// halted stops new starts. stopped ends everything.
	halted, stopped bool
	haltReason      string // v1.ReasonHalt or v1.ReasonMaxFailures
	// requeued holds instances that were requeued by hand and whose partitions are not open again yet. partial is set if only
	// requeued instances run again and all others keep their final state.
	requeued []int32
	partial  bool
	// children holds the child workflows of open partitions, by first instance. late marks those that are sent an order as soon
	// as they are open.
	children map[int]*childWorkflow
	late     map[int]bool
	waits    bool // a partition waits until fewer child workflows of the run are open
}

func newPartitionedFanOut(task, total int) *partitionedFanOut {
	return &partitionedFanOut{task: task, total: total, children: map[int]*childWorkflow{}, late: map[int]bool{}}
}

// partitionFrom returns the partition that starts at an instance, or nil if it was never opened.
func (m *partitionedFanOut) partitionFrom(from int) *v1.PartitionReport {
	for _, p := range m.partitions {
		if int(p.GetFrom()) == from {
			return p
		}
	}
	return nil
}

// isLarge reports whether count instances of a task need children of the run. Tasks that need no node stay with the run, which
// handles their waiting itself.
func (r *run) isLarge(i, count int) bool {
	t := r.graph.Definition(i).GetType()
	return r.in.GetPartition() == nil && count > r.limits.Instances && v1.NeedsNode(t)
}

// partitionedOf returns the large fan-out of task i, or nil if it has none.
func (r *run) partitionedOf(i int) *partitionedFanOut {
	for _, m := range r.partitioned {
		if m.task == i {
			return m
		}
	}
	return nil
}

// expandLarge starts a large fan-out, whose instances run in child workflows.
func (r *run) expandLarge(i, count int) {
	m := newPartitionedFanOut(i, count)
	if was := r.partitionedOf(i); was != nil && was.total == count {
		m.before, m.requeued, m.partial = was.partitions, was.requeued, len(was.requeued) > 0
		if m.partial && r.failuresOf(was)-int32(len(m.requeued)) > r.core.Definition(i).GetMaxFailures() {
			m.halt(v1.ReasonMaxFailures)
		}
	}
	r.partitioned = append(slices.DeleteFunc(r.partitioned, func(m *partitionedFanOut) bool { return m.task == i }), m)
	r.status.Extras(i).FanOut = &status.FanOut{Total: count, Counts: map[string]int32{v1.TaskPending: int32(count)}}
	r.events = append(r.events, dag.Expanded{Task: i, Count: count, Partitioned: true})
}

// partitionSize returns the number of instances in a partition.
func (r *run) partitionSize(m *partitionedFanOut) int {
	if size, auto := definition.BatchOf(r.core.Definition(m.task)); size > 1 || auto {
		return r.limits.PartitionInstances * batchedPartitions
	}
	return r.limits.PartitionInstances
}

func (m *partitionedFanOut) partitionEnd(k, size int) int { return min((k+1)*size, m.total) }

// receivePartitionReports applies the reports of the children.
func (r *run) receivePartitionReports() {
	reports := workflow.GetSignalChannel(r.root, names.PartitionReportSignal)
	for reports.Len() > 0 {
		var p v1.PartitionReport
		if !reports.ReceiveAsync(&p) {
			continue
		}
		i, ok := r.graph.Index(p.GetTask())
		m := r.partitionedOf(i)
		if !ok || m == nil {
			continue
		}
		k := slices.IndexFunc(m.partitions, func(was *v1.PartitionReport) bool { return was.GetFrom() == p.GetFrom() })
		if k < 0 || p.GetChain() != m.partitions[k].GetChain() {
			continue // its child was started by an execution that a reset has terminated
		}
		r.answerUpdates(&p)
		for _, node := range p.GetNodes() {
			r.attributes.wanted.AddNode(node)
		}
		p.ContextUpdates, p.Nodes = nil, nil // each report is merged once, whatever order the reports come in
		if p.GetGeneration() != m.partitions[k].GetGeneration() || m.partitions[k].GetOver() || p.GetRevision() <= m.partitions[k].GetRevision() {
			continue
		}
		p.Slot, p.First = m.partitions[k].GetSlot(), m.partitions[k].GetFirst()
		m.partitions[k] = &p
		if w := m.children[int(p.GetFrom())]; w != nil && p.GetOver() {
			w.closing = true
		}
		r.reported(m)
	}
}

// endLostPartition ends a partition whose child has ended without a final report.
func (r *run) endLostPartition(m *partitionedFanOut, from int, why string) {
	if p := m.partitionFrom(from); p != nil && !p.GetOver() {
		p.Failure = cmp.Or(p.GetFailure(), fmt.Sprintf("instances from %d on: %s", from, why))
		r.endPartition(m, p, v1.TaskFailed, v1.TaskLost)
	}
}

// endUnopenedPartition ends a partition that was cancelled or killed before its child started.
func (r *run) endUnopenedPartition(m *partitionedFanOut, from int) {
	if p := m.partitionFrom(from); p != nil && !p.GetOver() {
		state := v1.TaskCancelled
		if r.killReason(m.task) != "" {
			state = v1.TaskKilled
		}
		r.endPartition(m, p, state, state)
	}
}

// endPartition ends a partition in one state and its open instances in another.
func (r *run) endPartition(m *partitionedFanOut, p *v1.PartitionReport, state, instances string) {
	p.Over, p.State, p.ExitCode = true, state, -1
	for _, open := range v1.OpenTaskStates() {
		if n := p.Counts[open]; n > 0 {
			p.Counts[instances] += n
			delete(p.Counts, open)
		}
	}
	r.reported(m)
}

// failures returns how many instances have failed and how many were cancelled.
func (m *partitionedFanOut) failures() (n, cancelled int32) {
	for _, p := range m.partitions {
		//workflowcheck:ignore (a sum does not depend on the order)
		for state, count := range p.GetCounts() {
			switch {
			case state == v1.TaskCancelled:
				cancelled += count
			case v1.IsTaskFailure(state):
				n += count
			}
		}
	}
	return n, cancelled
}

// failuresOf returns how many instances of a fan-out count towards maxFailures. Instances that a person cancelled count, too.
func (r *run) failuresOf(m *partitionedFanOut) int32 {
	n, cancelled := m.failures()
	if cancelled > 0 && !m.stopped {
		n += cancelled
	}
	return n
}

func (m *partitionedFanOut) halt(reason string) { m.halted, m.haltReason = true, reason }

// reported updates the status from the partitions' reports and ends the task with its last partition.
func (r *run) reported(m *partitionedFanOut) {
	def := r.core.Definition(m.task)
	counts, known, over := map[string]int32{}, int32(0), true
	for _, p := range m.partitions {
		//workflowcheck:ignore (sums do not depend on the order)
		for state, n := range p.GetCounts() {
			counts[state] += n
			known += n
		}
		over = over && p.GetOver()
	}
	if rest := int32(m.total) - known; rest > 0 {
		counts[v1.TaskPending] += rest
	}
	r.status.FanOut(m.task).Counts = counts
	r.status.Touch(m.task)
	switch failed := r.failuresOf(m) > def.GetMaxFailures(); {
	case failed && !m.halted:
		m.halt(v1.ReasonMaxFailures)
		r.orderPartitions(m)
	case !failed && m.halted && m.haltReason == v1.ReasonMaxFailures && !m.partial: // some were requeued
		m.halted = false
		r.orderPartitions(m)
	}
	r.wake()
	over = over && len(m.requeued) == 0 && !slices.ContainsFunc(m.partitions, func(p *v1.PartitionReport) bool { return r.reopens(m, p) })
	if over && (known >= int32(m.total) || m.halted || m.stopped) {
		if n := counts[v1.TaskPending]; n > 0 { // from partitions that were never opened
			delete(counts, v1.TaskPending)
			counts[v1.TaskSkipped] += n
		}
		r.events = append(r.events, m.ended(r.core.Task(m.task).Claim, def, counts, r.failuresOf(m)))
	}
}

func (m *partitionedFanOut) partitionFailed() bool {
	return slices.ContainsFunc(m.partitions, func(p *v1.PartitionReport) bool { return p.GetState() == v1.TaskFailed })
}

// ended returns the end of the task.
func (m *partitionedFanOut) ended(claim int32, def *v1.TaskDefinition, counts map[string]int32, failed int32) dag.Ended {
	e := dag.Ended{Task: m.task, Claim: claim, State: v1.TaskCompleted}
	failure := ""
	for _, p := range m.partitions {
		if e.ExitCode == 0 || e.ExitCode == -1 && p.GetExitCode() > 0 {
			e.ExitCode = p.GetExitCode()
		}
		failure = cmp.Or(failure, p.GetFailure())
	}
	switch {
	case failed > def.GetMaxFailures() && failed == counts[v1.TaskCancelled]:
		e.State, e.Reason = v1.TaskFailed, v1.ReasonInstances
		e.Error = fmt.Sprintf("%d of %d instances were cancelled", failed, m.total)
	case failed > def.GetMaxFailures():
		e.State, e.Reason = v1.TaskFailed, v1.ReasonInstances
		e.Error = fmt.Sprintf("%d of %d instances failed: %s", failed, m.total, failure)
	case m.stopped:
		e.State = v1.TaskCancelled
	case !m.halted && counts[v1.TaskCancelled] > 0 && m.partitionFailed():
		// A person cancelled an instance; instances ended by a halt are no failures.
		e.State, e.Reason = v1.TaskFailed, v1.ReasonInstances
		e.Error = fmt.Sprintf("%d of %d instances were cancelled", counts[v1.TaskCancelled], m.total)
	case counts[v1.TaskSkipped] > 0:
		e.State, e.Reason = v1.TaskSkipped, v1.ReasonHalt
	}
	return e
}

// restorePartitions restores a large fan-out of the previous execution.
func (r *run) restorePartitions(i int, t *v1.TaskState) {
	if len(t.GetPartitions()) == 0 || r.core.Task(i).State == v1.TaskPending && len(r.startsWith().From) > 0 {
		return // there are no partitions, or all of it is done again
	}
	m := newPartitionedFanOut(i, int(t.GetTask().GetCount()))
	m.partitions, m.before, m.requeued, m.partial = t.GetPartitions(), t.GetPreviousPartitions(), t.GetRequeued(), t.GetPartial()
	r.partitioned = append(r.partitioned, m)
	r.reattachPartitions(m)
	r.status.Extras(i).FanOut = &status.FanOut{Total: m.total, Counts: t.GetTask().GetCounts()}
	if f := r.status.FanOut(i); f.Counts == nil {
		f.Counts = map[string]int32{}
	}
	r.status.SetItems(i, t.GetItems())
	if r.failuresOf(m) > r.core.Definition(i).GetMaxFailures() && r.in.GetState() != nil {
		m.halt(v1.ReasonMaxFailures) // otherwise partitions would be opened before the others have reported again
	}
}

// allPartitions returns the reports of the partitions of all large fan-outs.
func (r *run) allPartitions() (parts []*v1.PartitionReport) {
	for _, m := range r.partitioned {
		parts = append(parts, m.partitions...)
	}
	return parts
}

// childOf returns the ID of the workflow that holds the requested instance, and whether that workflow is open. The ID is "" if
// this workflow holds the instance or if no workflow does yet.
func (r *run) childOf(req *v1.InstancesRequest) (id string, open bool) {
	i, ok := r.graph.Index(req.GetTask())
	m := r.partitionedOf(i)
	if !ok || m == nil || req.GetFrom() < 0 {
		return "", false
	}
	if k := int(req.GetFrom()) / r.partitionSize(m); k < len(m.partitions) && (m.partitions[k].GetOver() || m.partitions[k].GetFirst() != "") {
		return r.partitionID(m.partitions[k]), !m.partitions[k].GetOver()
	}
	return "", false
}

// addPartitions adds the output lists of a task's partitions to a request. It returns false if there are none.
func (r *run) addPartitions(req *v1.CollectRequest, task int) bool {
	m := r.partitionedOf(task)
	if m == nil {
		return false
	}
	size := r.partitionSize(m)
	for k, p := range m.partitions {
		part := &v1.CollectPartition{Key: p.GetOutputs(), Count: int32(m.partitionEnd(k, size)) - p.GetFrom()}
		if part.Key == "" && p.GetCounts()[v1.TaskCompleted] != part.Count {
			part.State = v1.TaskLost // its child left no list
			if p.GetState() == v1.TaskCancelled || p.GetState() == v1.TaskKilled {
				part.State = p.GetState()
			}
		}
		req.Partitions = append(req.Partitions, part)
	}
	if begun := len(m.partitions) * size; begun < m.total {
		req.Partitions = append(req.Partitions, &v1.CollectPartition{Count: int32(m.total - begun), State: v1.TaskSkipped})
	}
	return true
}

package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// partitionsAtOnce is the most partitions of a fan-out that are open at the same time.
	partitionsAtOnce = 8
	// claimsOfGeneration is the number of claims reserved for the instances of partitions in each generation of a run, because
	// the run cannot tell how many of them were used.
	claimsOfGeneration = 10_000
)

// partitions owns the large fan-outs of a run: it sends their partitions orders, applies their reports, and ends a task with its
// last partition.
type partitions struct {
	*execution
	abandoned partitionPredecessors
	children  partitionChildren
	commands  partitionCommands
	contexts  partitionContexts
	outbox    partitionOutbox
	openings  partitionOpenings
	view      nodeList

	fanOuts []*partitionedFanOut
	answers int // number of answers to context updates in flight
}

// The partitions use these parts of other components.
type (
	partitionPredecessors interface {
		isPending() bool
	}
	partitionChildren interface {
		cancel(w *childWorkflow, why string)
	}
	partitionCommands interface {
		isCancelled() bool
	}
	partitionContexts interface {
		merge(updates ...*structpb.Struct) []string
	}
	partitionOpenings interface {
		open(m *partitionedFanOut)
		reattach(m *partitionedFanOut)
	}
	partitionOutbox interface {
		watch(future workflow.Future, onReady func(workflow.Future))
		signal(id, name string, arg any, written int) workflow.Future
	}
)

// of returns the large fan-out of task i, or nil if it has none.
func (ps *partitions) of(i int) *partitionedFanOut {
	for _, m := range ps.fanOuts {
		if m.task == i {
			return m
		}
	}
	return nil
}

// idOf returns the workflow ID of the child that runs a partition.
func (ps *partitions) idOf(p *v1.PartitionReport) string {
	return names.FanOut{Run: ps.id, Chain: p.GetChain(), Generation: p.GetGeneration(), Task: p.GetTask(), From: int(p.GetFrom())}.ID()
}

// running returns the large fan-outs whose tasks run.
func (ps *partitions) running() []*partitionedFanOut {
	var running []*partitionedFanOut
	for _, m := range ps.fanOuts {
		if ps.core.Task(m.task).State == v1.TaskRunning {
			running = append(running, m)
		}
	}
	return running
}

// openAll opens as many partitions of the large fan-outs as the limits allow.
func (ps *partitions) openAll() {
	if ps.abandoned.isPending() {
		return
	}
	for _, m := range ps.running() {
		ps.openings.open(m)
	}
}

// restoreTask restores a large fan-out of the previous execution.
func (ps *partitions) restoreTask(i int, t *v1.TaskState) {
	if len(t.GetPartitions()) == 0 || ps.core.Task(i).State == v1.TaskPending && len(ps.startsWith().From) > 0 {
		return // there are no partitions, or all of it is done again
	}
	m := newPartitionedFanOut(i, int(t.GetTask().GetCount()), ps.partitionSize(i))
	m.partitions, m.before, m.requeued, m.partial = t.GetPartitions(), t.GetPreviousPartitions(), t.GetRequeued(), t.GetPartial()
	ps.fanOuts = append(ps.fanOuts, m)
	ps.openings.reattach(m)
	ps.show(m, t.GetTask().GetCounts())
	ps.records.At(i).Items = t.GetItems()
	if m.countedFailures() > ps.core.Definition(i).GetMaxFailures() && ps.in.GetState() != nil {
		m.halt(v1.ReasonMaxFailures) // otherwise partitions would be opened before the others have reported again
	}
}

// countDeadLetters returns the number of dead letters in the partitions.
func (ps *partitions) countDeadLetters() (n int) {
	for _, m := range ps.fanOuts {
		n += int(max(m.counts[v1.TaskDeadLetter], 0))
	}
	return n
}

// succeeded returns the number of a task's instances in partitions that have succeeded.
func (ps *partitions) succeeded(task int) (n int32) {
	if m := ps.of(task); m != nil {
		//workflowcheck:ignore (a sum does not depend on the order)
		for state, count := range m.counts {
			if v1.IsTaskSuccess(state) {
				n += count
			}
		}
	}
	return n
}

// saveTasks hands the partitions over to the next execution.
func (ps *partitions) saveTasks(c *v1.RunState) {
	for _, m := range ps.fanOuts {
		if t := c.Tasks[ps.graph.Name(m.task)]; t != nil {
			t.Partitions, t.PreviousPartitions, t.Requeued, t.Partial = m.partitions, m.before, m.requeued, m.partial
		}
	}
}

// all returns the reports of the partitions of all large fan-outs.
func (ps *partitions) all() (parts []*v1.PartitionReport) {
	for _, m := range ps.fanOuts {
		parts = append(parts, m.partitions...)
	}
	return parts
}

// childOf returns the ID of the workflow that holds the requested instance, and whether that workflow is open. The ID is "" if
// this workflow holds the instance or if no workflow does yet.
func (ps *partitions) childOf(req *v1.InstancesRequest) (id string, open bool) {
	i, ok := ps.graph.Index(req.GetTask())
	m := ps.of(i)
	if !ok || m == nil || req.GetFrom() < 0 {
		return "", false
	}
	if k := int(req.GetFrom()) / m.size; k < len(m.partitions) && (m.partitions[k].GetOver() || m.partitions[k].GetFirst() != "") {
		return ps.idOf(m.partitions[k]), !m.partitions[k].GetOver()
	}
	return "", false
}

// addOutputs adds the output lists of a task's partitions to a request. It returns false if there are none.
func (ps *partitions) addOutputs(req *v1.CollectRequest, task int) bool {
	m := ps.of(task)
	if m == nil {
		return false
	}
	for k, p := range m.partitions {
		part := &v1.CollectPartition{Key: p.GetOutputs(), Count: int32(m.partitionEnd(k)) - p.GetFrom()}
		if part.Key == "" && p.GetCounts()[v1.TaskCompleted] != part.Count {
			part.State = v1.TaskLost // its child left no list
			if p.GetState() == v1.TaskCancelled || p.GetState() == v1.TaskKilled {
				part.State = p.GetState()
			}
		}
		req.Partitions = append(req.Partitions, part)
	}
	if begun := len(m.partitions) * m.size; begun < m.total {
		req.Partitions = append(req.Partitions, &v1.CollectPartition{Count: int32(m.total - begun), State: v1.TaskSkipped})
	}
	return true
}

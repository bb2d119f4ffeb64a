package run

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

const (
	// maxCompletedNames is the most bytes that the names of completed ancestors may take in a request.
	maxCompletedNames = 4 << 10
	// maxAncestorEnds is the most other ancestors that a request describes.
	maxAncestorEnds = 1000
)

// ancestorEnds returns how each ancestor of a task has ended.
func (r *run) ancestorEnds(task int) *historyv1.AncestorEnds {
	if part := r.in.GetPartition(); part != nil {
		return part.GetEnds()
	}
	parents := map[int]bool{}
	for _, p := range r.graph.Parents(task) {
		parents[p] = true
	}
	ends := &historyv1.AncestorEnds{}
	var far []string // completed ancestors that are not parents
	size := 0
	for _, i := range r.graph.Ancestors(task) {
		rec, name := r.core.Task(i), r.graph.Name(i)
		if rec.State != v1.TaskCompleted || rec.ExitCode != 0 || rec.Attempt > 0 || r.graph.FansOut(i) {
			if parents[i] || len(ends.Others) < maxAncestorEnds {
				ends.Others = append(ends.Others, r.ancestorEnd(i, rec, parents[i]))
			}
			continue
		}
		if size += len(name); parents[i] {
			ends.Completed = append(ends.Completed, name)
		} else {
			far = append(far, name)
		}
	}
	if size <= maxCompletedNames {
		ends.Completed = append(ends.Completed, far...)
	}
	if len(ends.Completed)+len(ends.Others) == 0 {
		return nil
	}
	return ends
}

// ancestorEnd returns how one ancestor has ended.
func (r *run) ancestorEnd(i int, rec dag.Record, isParent bool) *historyv1.AncestorEnd {
	end := &historyv1.AncestorEnd{
		Task: r.graph.Name(i), State: rec.State, Reason: rec.Reason, Error: dag.OneLine(rec.Error), ExitCode: rec.ExitCode, Attempt: rec.Attempt,
	}
	if end.FanOut = r.fanOutCounts(i); end.FanOut != nil && isParent {
		end.FanOut.Items = r.records.ItemsOf(i, r.graph.Definition(i))
	}
	return end
}

// fanOutCounts returns how many instances a task has and how many of them have succeeded, or nil if it has not fanned out.
func (r *run) fanOutCounts(task int) *historyv1.FanOutCounts {
	count, ok := r.instanceCount(task)
	if !ok {
		return nil
	}
	counts := &historyv1.FanOutCounts{Count: int32(count), Completed: r.fanOuts.Succeeded(task)}
	//workflowcheck:ignore (a sum does not depend on the order)
	for state, n := range r.core.InstanceCounts(task) {
		if v1.IsTaskSuccess(state) {
			counts.Completed += int32(n)
		}
	}
	return counts
}

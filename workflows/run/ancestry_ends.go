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
func (an *ancestry) ancestorEnds(task int) *historyv1.AncestorEnds {
	if part := an.in.GetPartition(); part != nil {
		return part.GetEnds()
	}
	parents := map[int]bool{}
	for _, p := range an.graph.Parents(task) {
		parents[p] = true
	}
	ends := &historyv1.AncestorEnds{}
	var far []string // completed ancestors that are not parents
	size := 0
	for _, i := range an.graph.Ancestors(task) {
		rec, name := an.core.Task(i), an.graph.Name(i)
		if rec.State != v1.TaskCompleted || rec.ExitCode != 0 || rec.Attempt > 0 || an.graph.FansOut(i) {
			if parents[i] || len(ends.Others) < maxAncestorEnds {
				ends.Others = append(ends.Others, an.ancestorEnd(i, rec, parents[i]))
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
func (an *ancestry) ancestorEnd(i int, rec dag.Record, isParent bool) *historyv1.AncestorEnd {
	end := &historyv1.AncestorEnd{
		Task: an.graph.Name(i), State: rec.State, Reason: rec.Reason, Error: dag.OneLine(rec.Error), ExitCode: rec.ExitCode, Attempt: rec.Attempt,
	}
	if end.FanOut = an.fanOutCounts(i); end.FanOut != nil && isParent {
		end.FanOut.Items = an.records.ItemsOf(i, an.graph.Definition(i))
	}
	return end
}

// fanOutCounts returns how many instances a task has and how many of them have succeeded, or nil if it has not fanned out.
func (an *ancestry) fanOutCounts(task int) *historyv1.FanOutCounts {
	count, ok := an.instanceCount(task)
	if !ok {
		return nil
	}
	counts := &historyv1.FanOutCounts{Count: int32(count), Completed: an.fanOuts.Succeeded(task)}
	//workflowcheck:ignore (a sum does not depend on the order)
	for state, n := range an.core.InstanceCounts(task) {
		if v1.IsTaskSuccess(state) {
			counts.Completed += int32(n)
		}
	}
	return counts
}

package dataflow

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

// ancestorEnds returns how each ancestor of a task has ended. A task in `finally` sees all tasks outside of it, too.
func (s *State) ancestorEnds(task int) *historyv1.AncestorEnds {
	if part := s.Input.GetPartition(); part != nil {
		return part.GetEnds()
	}
	parents := map[int]bool{}
	for _, p := range s.parentsOf(task) {
		parents[p] = true
	}
	above := s.graph.Ancestors(task)
	isFinally := s.graph.IsFinally(task)
	if tasks, _ := s.graph.Finally(); isFinally {
		for i := tasks - 1; i >= 0; i-- {
			above = append(above, i)
		}
	}
	ends := &historyv1.AncestorEnds{}
	var far []string // completed ancestors that are not parents
	size := 0
	for _, i := range above {
		rec, name := s.endOf(i), s.graph.Name(i)
		if rec.State != v1.TaskCompleted || rec.ExitCode != 0 || rec.Attempt > 0 || s.graph.FansOut(i) {
			if parents[i] || isFinally || len(ends.Others) < maxAncestorEnds {
				ends.Others = append(ends.Others, s.ancestorEnd(i, rec, parents[i]))
			}
			continue
		}
		if size += len(name); parents[i] {
			ends.Completed = append(ends.Completed, name)
		} else {
			far = append(far, name)
		}
	}
	if size <= maxCompletedNames || isFinally {
		ends.Completed = append(ends.Completed, far...)
	}
	if len(ends.Completed)+len(ends.Others) == 0 {
		return nil
	}
	return ends
}

// ancestorEnd returns how one ancestor has ended.
func (s *State) ancestorEnd(i int, rec dag.Record, isParent bool) *historyv1.AncestorEnd {
	end := &historyv1.AncestorEnd{
		Task: s.graph.Name(i), State: rec.State, Reason: rec.Reason, Error: dag.OneLine(rec.Error), ExitCode: rec.ExitCode, Attempt: rec.Attempt,
	}
	if end.FanOut = s.fanOutCounts(i); end.FanOut != nil && isParent {
		end.FanOut.Items = s.records.ItemsOf(i, s.graph.Definition(i))
	}
	return end
}

// fanOutCounts returns how many instances a task has and how many of them have succeeded, or nil if it has not fanned out.
func (s *State) fanOutCounts(task int) *historyv1.FanOutCounts {
	count, ok := s.flight.InstanceCount(task)
	if !ok {
		return nil
	}
	counts := &historyv1.FanOutCounts{Count: int32(count), Completed: s.fanOuts.Succeeded(task)}
	//workflowcheck:ignore (a sum does not depend on the order)
	for state, n := range s.core.InstanceCounts(task) {
		if v1.IsTaskSuccess(state) {
			counts.Completed += int32(n)
		}
	}
	return counts
}

package fanout

import (
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// State holds the large fan-outs of a run, with their partitions and the child workflows of these, and the context of the run.
// In a partition it holds what the partition and its run owe each other. Its methods return the effects of what has happened.
// A State is not safe for concurrent use.
type State struct {
	flight.Config
	core    *dag.State
	records *flight.Records
	effects []Effect // of the running method

	fanOuts  []*fanOut
	held     map[int]bool   // tasks that expand when they are no longer held
	children map[int]*child // by their numbers
	newest   int            // number of the newest child
	answers  int            // answers to context updates in flight

	context *structpb.Struct // replaced as a whole: requests hold it
	asks    []*ask           // in ascending order of their numbers
	asked   int64            // number of the newest ask
	report  report
}

// New returns the state of a run without large fan-outs.
func New(c flight.Config, core *dag.State, records *flight.Records, context *structpb.Struct) *State {
	return &State{Config: c, core: core, records: records, held: map[int]bool{}, children: map[int]*child{}, context: context}
}

// take returns the effects of the running method.
func (s *State) take() []Effect {
	effects := s.effects
	s.effects = nil
	return effects
}

// do adds effects of the running method.
func (s *State) do(effects ...Effect) { s.effects = append(s.effects, effects...) }

// of returns the large fan-out of a task, or nil if it has none.
func (s *State) of(task int) *fanOut {
	for _, m := range s.fanOuts {
		if m.task == task {
			return m
		}
	}
	return nil
}

// idOf returns the ID of the workflow that runs a partition.
func (s *State) idOf(p *historyv1.PartitionReport) string {
	return names.FanOut{Run: s.RunID, Chain: p.GetChain(), Generation: p.GetGeneration(), Task: p.GetTask(), From: int(p.GetFrom())}.ID()
}

// isRunning reports whether the task of a fan-out runs.
func (s *State) isRunning(m *fanOut) bool { return s.core.Task(m.task).State == v1.TaskRunning }

// maxFailures returns how many instances of a fan-out may fail.
func (s *State) maxFailures(m *fanOut) int32 { return s.core.Definition(m.task).GetMaxFailures() }

// Running returns the tasks that run as large fan-outs.
func (s *State) Running() (tasks []int) {
	for _, m := range s.fanOuts {
		if s.isRunning(m) {
			tasks = append(tasks, m.task)
		}
	}
	return tasks
}

// IsPartitioned reports whether a task is a large fan-out.
func (s *State) IsPartitioned(task int) bool { return s.of(task) != nil }

// Reports returns the newest reports of the partitions of all large fan-outs.
func (s *State) Reports() (parts []*historyv1.PartitionReport) {
	for _, m := range s.fanOuts {
		parts = append(parts, m.partitions...)
	}
	return parts
}

// CountDeadLetters returns the number of dead letters in the partitions.
func (s *State) CountDeadLetters() (n int) {
	for _, m := range s.fanOuts {
		n += int(max(s.records.Of(m.task).Counts[v1.TaskDeadLetter], 0))
	}
	return n
}

// Succeeded returns the number of a task's instances in partitions that have succeeded.
func (s *State) Succeeded(task int) (n int32) {
	if m := s.of(task); m != nil {
		//workflowcheck:ignore (a sum does not depend on the order)
		for state, count := range s.records.Of(m.task).Counts {
			if v1.IsTaskSuccess(state) {
				n += count
			}
		}
	}
	return n
}

// ChildOf returns the ID of the workflow that holds the requested instances, and whether that workflow is open. The ID is "" if
// this workflow holds the instances or if no workflow does yet.
func (s *State) ChildOf(req *historyv1.InstancesRequest) (id string, open bool) {
	i, ok := s.core.Index(req.GetTask())
	m := s.of(i)
	if !ok || m == nil || req.GetFrom() < 0 {
		return "", false
	}
	if p := m.partition(int(req.GetFrom())); p.GetOver() || p.GetFirst() != "" {
		return s.idOf(p), !p.GetOver()
	}
	return "", false
}

// AddOutputs adds the output lists of a task's partitions to a request. It returns false if there are none.
func (s *State) AddOutputs(req *historyv1.CollectRequest, task int) bool {
	m := s.of(task)
	if m == nil {
		return false
	}
	for k, p := range m.partitions {
		part := &historyv1.CollectPartition{Key: p.GetOutputs(), Count: int32(m.partitionEnd(k)) - p.GetFrom()}
		if part.Key == "" && p.GetCounts()[v1.TaskCompleted] != part.Count {
			part.State = v1.TaskLost // its child left no list
			switch {
			case p.GetState() == v1.TaskCancelled || p.GetState() == v1.TaskKilled:
				part.State = p.GetState()
			case len(p.GetLeftOn()) > 0: // it is still open, on silent nodes
				part.State = v1.TaskCancelled
			}
		}
		req.Partitions = append(req.Partitions, part)
	}
	if begun := len(m.partitions) * m.size; begun < m.total {
		req.Partitions = append(req.Partitions, &historyv1.CollectPartition{Count: int32(m.total - begun), State: v1.TaskSkipped})
	}
	return true
}

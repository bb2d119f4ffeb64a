package dag

import (
	"maps"

	v1 "switchyard/proto/switchyard/v1"
)

// Len returns the number of tasks and instances. The tasks of the graph come first, under their graph index. The instances of a
// task follow as soon as it fans out.
func (s *State) Len() int { return len(s.records.tasks) }

// Name returns the name of task or instance i, such as "each" or "each[3]".
func (s *State) Name(i int) string { return s.records.name(i) }

// Index returns the index of the task or instance with a name. It is the inverse of Name.
func (s *State) Index(name string) (int, bool) { return s.records.index(name) }

// Number returns the number of instance i, or -1 if i is a task.
func (s *State) Number(i int) int { return s.records.number(i) }

// Definition returns the definition of task i, or that of its task if i is an instance. It belongs to the graph.
func (s *State) Definition(i int) *v1.TaskDefinition { return s.records.node(i).def }

// FansOut reports whether i is a task that runs as instances.
func (s *State) FansOut(i int) bool {
	return i < s.records.graph.Len() && s.records.graph.FansOut(i)
}

// Group returns the task that i is an instance of, or -1 if i is a task.
func (s *State) Group(i int) int {
	if g := s.records.groupOf(i); g != nil {
		return g.task
	}
	return -1
}

// TaskOf returns the task of instance i, or i itself if it is a task.
func (s *State) TaskOf(i int) int {
	if g := s.records.groupOf(i); g != nil {
		return g.task
	}
	return i
}

// Instances returns the index range of a task's instances: first to first+count-1. count is 0 before the task has fanned out,
// if it has no instances, and if they are partitioned.
func (s *State) Instances(task int) (first, count int) {
	if g := s.records.instances(task); g != nil {
		return g.first, g.count
	}
	return 0, 0
}

// Expansion returns how a task has fanned out, as WithExpansion takes it. ok is false if it has not. A task without instances
// has not fanned out.
func (s *State) Expansion(task int) (from, count int, partitioned, ok bool) {
	if g := s.records.expansion(task); g != nil {
		return g.from, g.count, g.partitioned, true
	}
	return 0, 0, false, false
}

// RunningGroups returns the number of running tasks whose instances run, in this state or in other workflows.
func (s *State) RunningGroups() (n int) {
	for k, g := range s.records.groups {
		if s.records.byTask[g.task] == int32(k+1) && s.records.tasks[g.task].State == v1.TaskRunning {
			n++
		}
	}
	return n
}

// InstanceCounts returns the number of a task's instances in each state, without zeros. It returns nil if Instances returns
// none.
func (s *State) InstanceCounts(task int) map[string]int {
	if g := s.records.instances(task); g != nil {
		return maps.Clone(g.counts)
	}
	return nil
}

// FinalFailures returns the number of a task's instances that have failed for good; see Record.Final.
func (s *State) FinalFailures(task int) (n int) {
	first, count := s.Instances(task)
	for _, rec := range s.records.tasks[first : first+count] {
		if rec.Final {
			n++
		}
	}
	return n
}

// GroupHalted returns the reason of the HaltGroup in effect for a task, or "" if there is none.
func (s *State) GroupHalted(task int) string {
	if g := s.records.instances(task); g != nil {
		return g.halted
	}
	return ""
}

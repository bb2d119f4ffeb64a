package dag

import (
	"maps"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// A group is a task that has fanned out in this run.
type group struct {
	task        int
	first       int // index of the record of its first instance
	from        int // number of that instance
	count       int // number of instances; also set for a partitioned group, which has no records
	open        int // number of instances that have not ended
	failed      int // number of instances that failed or were cancelled
	partitioned bool
	halted      string         // reason of the HaltGroup in effect; empty if there is none
	counts      map[string]int // instances by state, without zeros; nil for a partitioned group
}

// Len returns the number of tasks and instances. The tasks of the graph come first, under their graph index. The instances of a
// task follow as soon as it fans out.
func (s *State) Len() int { return len(s.tasks) }

// Name returns the name of task or instance i, such as "each" or "each[3]".
func (s *State) Name(i int) string {
	if g := s.groupOf(i); g != nil {
		return names.InstanceName(s.graph.Name(g.task), s.Number(i))
	}
	return s.graph.Name(i)
}

// Index returns the index of the task or instance with a name. It is the inverse of Name.
func (s *State) Index(name string) (int, bool) {
	if i, ok := s.graph.Index(name); ok {
		return i, true
	}
	task, number, ok := names.ParseInstanceName(name)
	if !ok {
		return 0, false
	}
	i, ok := s.graph.Index(task)
	if !ok {
		return 0, false
	}
	g := s.instances(i)
	if g == nil || number < g.from || number >= g.from+g.count {
		return 0, false
	}
	return g.first + number - g.from, true
}

// Definition returns the definition of task i, or that of its task if i is an instance. It belongs to the graph.
func (s *State) Definition(i int) *v1.TaskDefinition { return s.node(i).def }

// Group returns the task that i is an instance of, or -1 if i is a task.
func (s *State) Group(i int) int {
	if g := s.groupOf(i); g != nil {
		return g.task
	}
	return -1
}

// Number returns the number of instance i, or -1 if i is a task.
func (s *State) Number(i int) int {
	if g := s.groupOf(i); g != nil {
		return g.from + i - g.first
	}
	return -1
}

// Instances returns the index range of a task's instances: first to first+count-1. count is 0 before the task has fanned out,
// if it has no instances, and if they are partitioned.
func (s *State) Instances(task int) (first, count int) {
	if g := s.instances(task); g != nil {
		return g.first, g.count
	}
	return 0, 0
}

// Expansion returns how a task has fanned out, as WithExpansion takes it. ok is false if it has not. A task without instances
// has not fanned out.
func (s *State) Expansion(task int) (from, count int, remote, ok bool) {
	if g := s.expansion(task); g != nil {
		return g.from, g.count, g.partitioned, true
	}
	return 0, 0, false, false
}

// InstanceCounts returns the number of a task's instances in each state, without zeros. It returns nil if Instances returns
// none.
func (s *State) InstanceCounts(task int) map[string]int {
	if g := s.instances(task); g != nil {
		return maps.Clone(g.counts)
	}
	return nil
}

// groupOf returns the group that i is an instance of, or nil.
func (s *State) groupOf(i int) *group {
	if i < s.graph.Len() {
		return nil
	}
	return &s.groups[s.owner[i-s.graph.Len()]]
}

// expansion returns the group of a task that has fanned out, or nil.
func (s *State) expansion(task int) *group {
	if task >= s.graph.Len() || s.progress[task].group == 0 {
		return nil
	}
	return &s.groups[s.progress[task].group-1]
}

// instances returns the group of a task whose instances are in this state, or nil.
func (s *State) instances(task int) *group {
	if g := s.expansion(task); g != nil && !g.partitioned {
		return g
	}
	return nil
}

// hasOpen reports whether a task has instances that have not ended.
func (s *State) hasOpen(i int) bool {
	g := s.instances(i)
	return g != nil && g.open > 0
}

// isPartitioned reports whether other workflows run the instances of a task.
func (s *State) isPartitioned(i int) bool {
	g := s.expansion(i)
	return g != nil && g.partitioned
}

// taskOf returns the task of instance i, or i itself if it is a task.
func (s *State) taskOf(i int) int {
	if g := s.groupOf(i); g != nil {
		return g.task
	}
	return i
}

func (s *State) node(i int) *node { return &s.graph.nodes[s.taskOf(i)] }

// addGroup registers a task that has fanned out. The caller adds its records.
func (s *State) addGroup(g group) {
	if !g.partitioned {
		g.counts = make(map[string]int)
	}
	s.groups = append(s.groups, g)
	s.progress[g.task].group = int32(len(s.groups))
	if g.partitioned {
		return
	}
	for range g.count {
		s.owner = append(s.owner, int32(len(s.groups)-1))
	}
}

package dag

import (
	"fmt"

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
	maxFailures int // number of instances that may fail without failing the task
	partitioned bool
	halted      string         // reason of the HaltGroup in effect; empty if there is none
	counts      map[string]int // instances by state, without zeros; nil for a partitioned group
}

// isStopped reports whether more instances have failed than maxFailures allows.
func (g *group) isStopped() bool { return g.failed > g.maxFailures }

// isHeldBack reports whether no more instances may start.
func (g *group) isHeldBack() bool { return g.halted != "" || g.isStopped() }

// groupTable holds the tasks that have fanned out, and maps instances to their tasks.
type groupTable struct {
	graph  *Graph
	groups []group // tasks that have fanned out, in the order of their expansion
	byTask []int32 // for each task, its index in groups plus 1, or 0 if it has not fanned out
	owner  []int32 // group of each instance
}

// groupOf returns the group that i is an instance of, or nil.
func (t *groupTable) groupOf(i int) *group {
	if i < t.graph.Len() {
		return nil
	}
	return &t.groups[t.owner[i-t.graph.Len()]]
}

// taskOf returns the task of instance i, or i itself if it is a task.
func (t *groupTable) taskOf(i int) int {
	if g := t.groupOf(i); g != nil {
		return g.task
	}
	return i
}

func (t *groupTable) node(i int) *node { return &t.graph.nodes[t.taskOf(i)] }

// expansion returns the group of a task that has fanned out, or nil.
func (t *groupTable) expansion(task int) *group {
	if task >= t.graph.Len() || t.byTask[task] == 0 {
		return nil
	}
	return &t.groups[t.byTask[task]-1]
}

// instances returns the group of a task whose instances are in this state, or nil.
func (t *groupTable) instances(task int) *group {
	if g := t.expansion(task); g != nil && !g.partitioned {
		return g
	}
	return nil
}

// hasOpen reports whether a task has instances that have not ended.
func (t *groupTable) hasOpen(i int) bool {
	g := t.instances(i)
	return g != nil && g.open > 0
}

// isPartitioned reports whether other workflows run the instances of a task.
func (t *groupTable) isPartitioned(i int) bool {
	g := t.expansion(i)
	return g != nil && g.partitioned
}

// name returns the name of task or instance i, such as "each" or "each[3]".
func (t *groupTable) name(i int) string {
	if g := t.groupOf(i); g != nil {
		return names.InstanceName(t.graph.Name(g.task), t.number(i))
	}
	return t.graph.Name(i)
}

// index returns the index of the task or instance with a name. It is the inverse of Name.
func (t *groupTable) index(name string) (int, bool) {
	if i, ok := t.graph.Index(name); ok {
		return i, true
	}
	task, number, ok := names.ParseInstanceName(name)
	if !ok {
		return 0, false
	}
	i, ok := t.graph.Index(task)
	if !ok {
		return 0, false
	}
	g := t.instances(i)
	if g == nil || number < g.from || number >= g.from+g.count {
		return 0, false
	}
	return g.first + number - g.from, true
}

// number returns the number of instance i, or -1 if i is a task.
func (t *groupTable) number(i int) int {
	if g := t.groupOf(i); g != nil {
		return g.from + i - g.first
	}
	return -1
}

// add registers a task that has fanned out. The caller adds its records.
func (t *groupTable) add(g group) {
	g.maxFailures = t.graph.nodes[g.task].maxFailures
	if !g.partitioned {
		g.counts = make(map[string]int)
	}
	t.groups = append(t.groups, g)
	t.byTask[g.task] = int32(len(t.groups))
	if g.partitioned {
		return
	}
	for range g.count {
		t.owner = append(t.owner, int32(len(t.groups)-1))
	}
}

// stoppedText returns a message for people about why an instance of a group can no longer start.
func (t *groupTable) stoppedText(g *group) string {
	return fmt.Sprintf("too many instances of task %q have failed (maxFailures: %d)", t.graph.Name(g.task), g.maxFailures)
}

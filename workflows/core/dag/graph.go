package dag

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// A Graph is a compiled definition. It is immutable, and safe for concurrent use.
//
// A task is identified by its index, from 0 to Len()-1. The indices are a topological order, so parents have lower indices than
// their children. Among the tasks that could come next, the one with the lowest name does. The tasks of `finally` follow all
// others, in an order of the same kind.
type Graph struct {
	nodes []node
	index map[string]int
	halt  bool
	tasks int // number of nodes that are not in `finally`
}

type node struct {
	name              string
	def               *v1.TaskDefinition
	parents, children []int
	retry             retryPolicy

	conditional bool    // has a condition
	guards      []int   // parents whose failure keeps the task from starting, unless it has a when or always
	when        trigger // empty for the default or onFailure: run
	always      bool    // onFailure: run
	stubborn    bool    // starts even if the run has halted
	excused     bool    // continueOnError
	fansOut     bool    // has parallel or foreach
	maxFailures int     // number of instances that may fail without failing the task
}

// NewGraph compiles a definition, which must not change afterwards. references holds what the expressions of each task read.
// NewGraph refuses unknown parents and cycles; everything else has been checked before. A parent that is named twice counts
// once.
func NewGraph(def *v1.Definition, references map[string]*historyv1.ConditionReferences) (*Graph, error) {
	g := &Graph{index: map[string]int{}, halt: def.GetFailurePolicy() == "halt"}
	if err := g.add(def.GetTasks(), references); err != nil {
		return nil, err
	}
	g.tasks = len(g.nodes)
	if err := g.add(def.GetFinally(), references); err != nil {
		return nil, err
	}
	return g, nil
}

// add appends tasks, which depend only on each other.
func (g *Graph) add(tasks map[string]*v1.TaskDefinition, references map[string]*historyv1.ConditionReferences) error {
	names := slices.Sorted(maps.Keys(tasks)) //workflowcheck:ignore (the order of the map is lost by sorting)
	rank := make(map[string]int, len(names))
	for r, name := range names {
		rank[name] = r
	}
	parents := make([][]int, len(names))
	children := make([][]int, len(names))
	for r, name := range names {
		for _, parent := range tasks[name].GetDependsOn() {
			p, ok := rank[parent]
			if !ok {
				return fmt.Errorf("task %q depends on unknown task %q", name, parent)
			}
			parents[r] = append(parents[r], p)
		}
		slices.Sort(parents[r])
		parents[r] = slices.Compact(parents[r])
		for _, p := range parents[r] {
			children[p] = append(children[p], r)
		}
	}
	order := topological(parents, children)
	if len(order) < len(names) {
		return fmt.Errorf("dependency cycle: %s", cycle(names, parents, order))
	}
	place := make([]int, len(names)) // index of each rank
	for i, r := range order {
		place[r] = len(g.nodes) + i
	}
	for _, r := range order {
		task := tasks[names[r]]
		when, run := trigger(task.GetWhen()), task.GetOnFailure() == "run"
		n := node{
			name:        names[r],
			def:         task,
			parents:     translate(parents[r], place),
			children:    translate(children[r], place),
			retry:       retryPolicyOf(task),
			conditional: strings.TrimSpace(task.GetCondition()) != "",
			when:        when,
			always:      run,
			stubborn:    run || when.stubborn(),
			excused:     task.GetContinueOnError(),
			fansOut:     task.GetParallel() != nil || task.GetForeach() != nil,
			maxFailures: int(max(task.GetMaxFailures(), 0)),
		}
		n.guards = n.parents
		if n.conditional {
			n.guards = g.unmentioned(n.parents, references[n.name].GetTasks())
		}
		g.index[n.name] = len(g.nodes)
		g.nodes = append(g.nodes, n)
	}
	return nil
}

// Len returns the number of tasks.
func (g *Graph) Len() int { return len(g.nodes) }

// Finally returns the range of the tasks of `finally`: from from to to-1.
func (g *Graph) Finally() (from, to int) { return g.tasks, len(g.nodes) }

// IsFinally reports whether task i belongs to `finally`.
func (g *Graph) IsFinally(i int) bool { return i >= g.tasks }

// Name returns the name of task i.
func (g *Graph) Name(i int) string { return g.nodes[i].name }

// Index returns the index of the task with a name. It is the inverse of Name.
func (g *Graph) Index(name string) (int, bool) {
	i, ok := g.index[name]
	return i, ok
}

// Parents returns the tasks that task i waits for, ascending. The slice belongs
// to the graph.
func (g *Graph) Parents(i int) []int { return g.nodes[i].parents }

// Children returns the tasks that wait for task i, ascending. The slice belongs
// to the graph.
func (g *Graph) Children(i int) []int { return g.nodes[i].children }

// Ancestors returns all tasks above task i, descending.
func (g *Graph) Ancestors(i int) []int {
	above := make([]bool, i+1)
	above[i] = true
	var ancestors []int
	for at := i; at >= 0; at-- {
		if !above[at] {
			continue
		}
		if at != i {
			ancestors = append(ancestors, at)
		}
		for _, p := range g.nodes[at].parents {
			above[p] = true
		}
	}
	return ancestors
}

// FansOut reports whether task i runs as instances.
func (g *Graph) FansOut(i int) bool { return g.nodes[i].fansOut }

// Definition returns the definition of task i. It belongs to the graph.
func (g *Graph) Definition(i int) *v1.TaskDefinition { return g.nodes[i].def }

// unmentioned returns the parents that a condition does not mention.
func (g *Graph) unmentioned(parents []int, mentioned []string) []int {
	return slices.DeleteFunc(slices.Clone(parents), func(p int) bool {
		return slices.Contains(mentioned, g.nodes[p].name)
	})
}

// translate maps ranks to indices, in place, and sorts them.
func translate(ranks, place []int) []int {
	for k, r := range ranks {
		ranks[k] = place[r]
	}
	slices.Sort(ranks)
	return ranks
}

// topological returns the ranks with parents first, and the lowest first among those that could come next. Ranks on or behind a
// cycle are missing.
func topological(parents, children [][]int) []int {
	open := make([]int, len(parents))
	var next ranks
	for r := range parents {
		if open[r] = len(parents[r]); open[r] == 0 {
			next = append(next, r) // ascending, so already a heap
		}
	}
	order := make([]int, 0, len(parents))
	for len(next) > 0 {
		r := heap.Pop(&next).(int)
		order = append(order, r)
		for _, c := range children[r] {
			if open[c]--; open[c] == 0 {
				heap.Push(&next, c)
			}
		}
	}
	return order
}

// maxCycleNames limits the number of tasks in the message about a cycle.
const maxCycleNames = 20

// cycle formats one cycle among the ranks that are missing from order, such as "a -> b -> a". Each task depends on the one
// after it.
func cycle(names []string, parents [][]int, order []int) string {
	sorted := make([]bool, len(names))
	for _, r := range order {
		sorted[r] = true
	}
	// Every unsorted rank has an unsorted parent, so the walk upwards always reaches a rank for the second time.
	at := slices.Index(sorted, false)
	step := make(map[int]int)
	var path []int
	for {
		if from, seen := step[at]; seen {
			path = append(path[from:], at)
			break
		}
		step[at] = len(path)
		path = append(path, at)
		at = parents[at][slices.IndexFunc(parents[at], func(p int) bool { return !sorted[p] })]
	}
	var text []string
	for _, r := range path[:min(len(path), maxCycleNames)] {
		text = append(text, names[r])
	}
	if len(path) > maxCycleNames {
		text = append(text, "...", names[path[len(path)-1]])
	}
	return strings.Join(text, " -> ")
}

// ranks is a heap with the lowest first.
type ranks []int

func (h ranks) Len() int           { return len(h) }
func (h ranks) Less(i, j int) bool { return h[i] < h[j] }
func (h ranks) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ranks) Push(x any)        { *h = append(*h, x.(int)) }
func (h *ranks) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

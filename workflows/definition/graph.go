package definition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

// graph holds the tasks of a definition, with those of `finally`, numbered in the order of their names.
type graph struct {
	names   []string
	ended   []string // those outside of `finally`, for the tasks in `finally`
	numbers map[string]int
	parents [][]int
	// guessed holds the parents that misspelled dependencies probably mean. A condition may read them, so that one mistake is
	// not reported twice.
	guessed [][]int

	// These are buffers of ancestors.
	seen  []bool
	open  []int
	above []string
}

func newGraph(def *v1.Definition) *graph {
	g := &graph{names: v1.TaskNames(def)}
	g.numbers = make(map[string]int, len(g.names))
	for i, name := range g.names {
		g.numbers[name] = i
	}
	if len(def.GetFinally()) > 0 {
		g.ended = slices.Sorted(maps.Keys(def.GetTasks()))
	}
	g.parents, g.guessed = make([][]int, len(g.names)), make([][]int, len(g.names))
	for i, name := range g.names {
		for _, dependency := range v1.TaskNamed(def, name).GetDependsOn() {
			if parent, ok := g.numbers[dependency]; ok && parent != i && v1.IsInFinally(def, dependency) == v1.IsInFinally(def, name) {
				g.parents[i] = append(g.parents[i], parent)
			}
		}
	}
	return g
}

// ancestors returns the names of all tasks upstream of a task, sorted. The slice is valid until the next call, because
// ancestors is called for each of thousands of tasks.
func (g *graph) ancestors(task int) []string {
	if g.seen == nil {
		g.seen, g.above = make([]bool, len(g.names)), []string{}
	}
	clear(g.seen)
	g.open = append(g.open[:0], task)
	for len(g.open) > 0 {
		next := g.open[len(g.open)-1]
		g.open = g.open[:len(g.open)-1]
		g.follow(g.parents[next])
		g.follow(g.guessed[next])
	}
	g.above = g.above[:0]
	for i, is := range g.seen {
		if is && i != task {
			g.above = append(g.above, g.names[i])
		}
	}
	return g.above
}

func (g *graph) follow(parents []int) {
	for _, parent := range parents {
		if !g.seen[parent] {
			g.seen[parent] = true
			g.open = append(g.open, parent)
		}
	}
}

// Order returns the tasks with parents before children, and those of `finally` last. Among the tasks that could come next, the first
// by name does. Tasks on or behind a cycle are left out; a checked definition has none.
func Order(def *v1.Definition) []string {
	g := newGraph(def)
	missing := make([]int, len(g.names))
	children := make([][]int, len(g.names))
	var ready []int // sorted
	for i, parents := range g.parents {
		missing[i] = len(parents)
		for _, parent := range parents {
			children[parent] = append(children[parent], i)
		}
		if len(parents) == 0 {
			ready = append(ready, i)
		}
	}
	order := make([]string, 0, len(g.names))
	for len(ready) > 0 {
		next := ready[0]
		ready = ready[1:]
		order = append(order, g.names[next])
		for _, child := range children[next] {
			if missing[child]--; missing[child] == 0 {
				at, _ := slices.BinarySearch(ready, child)
				ready = slices.Insert(ready, at, child)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(rankOf(v1.IsInFinally(def, a)), rankOf(v1.IsInFinally(def, b)))
	})
	return order
}

// rankOf orders the tasks of `finally` after all others.
func rankOf(isInFinally bool) int {
	if isInFinally {
		return 1
	}
	return 0
}

// taskPath returns the path of the task with a name in the definition at base.
func taskPath(base *source.Path, def *v1.Definition, name string) *source.Path {
	if v1.IsInFinally(def, name) {
		return base.Field("finally").Key(name)
	}
	return base.Field("tasks").Key(name)
}

// graphRules checks the dependencies between the tasks of a definition.
type graphRules struct{ *decoder }

// dependencies reports dependencies on unknown tasks, on the task itself, and duplicates. It returns the graph.
func (r graphRules) dependencies(def *v1.Definition) *graph {
	g := newGraph(def)
	for i, name := range g.names {
		list := taskPath(r.base, def, name).Field("dependsOn")
		seen := map[string]bool{}
		for k, dependency := range v1.TaskNamed(def, name).GetDependsOn() {
			p := list.Item(k)
			_, known := g.numbers[dependency]
			switch isInFinally := v1.IsInFinally(def, dependency); {
			case known && isInFinally != v1.IsInFinally(def, name):
				if isInFinally {
					r.Add(r.locate(p), p, fmt.Sprintf("task %q depends on %s, which is in finally and starts when all of tasks have ended", name, dependency),
						"move "+dependency+" to tasks, or "+name+" to finally")
				} else {
					r.Add(r.locate(p), p, fmt.Sprintf("task %q depends on %s, which has ended when finally begins", name, dependency),
						"leave it out; expressions in finally see the task as tasks."+dependency)
				}
			case known && dependency != name && !seen[dependency]:
			case r.IsFull():
				r.Dropped++
			case seen[dependency]:
				r.Add(r.locate(p), p, "dependsOn names "+source.Quote(dependency)+" twice", "")
			case dependency == name:
				r.Add(r.locate(p), p, "task "+source.Quote(name)+" depends on itself", "")
			default:
				others := slices.DeleteFunc(slices.Clone(g.names), func(other string) bool {
					return other == name || v1.IsInFinally(def, other) != v1.IsInFinally(def, name)
				})
				near := nearest.Word(dependency, others)
				hint := "known names: " + shortList(others)
				if near != "" {
					g.guessed[i] = append(g.guessed[i], g.numbers[near])
					hint = "did you mean " + near + "?"
				}
				r.Add(r.locate(p), p, fmt.Sprintf("task %q depends on %s, which does not exist", name, source.Quote(dependency)), hint)
			}
			seen[dependency] = true
		}
	}
	return g
}

// maxListed is the most names that a message lists.
const maxListed = 10

func shortList(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, ... (%d in all)", strings.Join(names[:maxListed], ", "), len(names))
}

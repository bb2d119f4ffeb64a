package definition

import (
	"fmt"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// maxCycles is the most cycles that are reported. A dense graph has more than there is time to list, and removing one edge
// usually breaks many.
const maxCycles = 20

// cycles reports each cycle of the graph once, at the place where its first task in the document names the next.
func (r graphRules) cycles(def *v1.Definition, g *graph) {
	told := map[string]bool{}
	for _, cycle := range g.cycles() {
		tasks := r.turn(def, g, cycle)
		words := strings.Join(tasks, " -> ")
		if told[words] {
			continue
		}
		told[words] = true
		shown := tasks
		if len(tasks) > maxListed {
			shown = slices.Concat(tasks[:maxListed-1], []string{fmt.Sprintf("(%d more)", len(tasks)-maxListed), tasks[len(tasks)-1]})
		}
		p := taskPath(r.base, def, tasks[0]).Field("dependsOn")
		next := tasks[1%len(tasks)]
		p = p.Item(slices.Index(v1.TaskNamed(def, tasks[0]).GetDependsOn(), next))
		r.Add(r.locate(p), p, "dependency cycle: "+strings.Join(append(slices.Clone(shown), tasks[0]), " -> "),
			"each of these tasks waits for the next one; remove one of the dependencies")
	}
}

// turn returns the names of the tasks in a cycle, beginning with the first one in the document, or with the first by name if
// there is no document.
func (r graphRules) turn(def *v1.Definition, g *graph, cycle []int) []string {
	names := make([]string, len(cycle))
	first, best := 0, source.Position{}
	for i, task := range cycle {
		names[i] = g.names[task]
		at := r.locateKey(taskPath(r.base, def, names[i]))
		if i == 0 || at.Line < best.Line || at.Line == best.Line &&
			(at.Column < best.Column || at.Column == best.Column && names[i] < names[first]) {
			first, best = i, at
		}
	}
	return slices.Concat(names[first:], names[:first])
}

// cycles returns one cycle for each dependency that closes one, found by depth-first search along the dependencies. Every
// cyclic part of the graph has such a dependency.
func (g *graph) cycles() (found [][]int) {
	const white, grey, black = 0, 1, 2
	colour := make([]int, len(g.names))
	var path []int // the grey tasks, each with its dependency
	var visit func(task int)
	visit = func(task int) {
		colour[task] = grey
		path = append(path, task)
		for _, parent := range g.parents[task] {
			switch {
			case len(found) == maxCycles:
				return
			case colour[parent] == white:
				visit(parent)
			case colour[parent] == grey:
				found = append(found, slices.Clone(path[slices.Index(path, parent):]))
			}
		}
		colour[task] = black
		path = path[:len(path)-1]
	}
	for task := range g.names {
		if colour[task] == white && len(found) < maxCycles {
			visit(task)
		}
	}
	return found
}

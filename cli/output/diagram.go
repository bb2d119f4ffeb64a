package output

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"switchyard/drawing/graph"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// fills maps states to their colours in diagrams. Any other state is drawn as a failure.
var fills = map[string]string{
	v1.TaskCompleted: "#b7e1cd", v1.TaskStopped: "#b7e1cd", v1.TaskRunning: "#a4c2f4", v1.TaskAssigned: "#ffe599", v1.TaskQueued: "#ffe599",
	v1.TaskPaused: "#ffe599", v1.TaskCancelled: "#ffe599", v1.TaskPending: "#eeeeee", v1.TaskSkipped: "#eeeeee", "": "#eeeeee",
}

const failedFill = "#f4b6b6"

func fill(state string) string {
	if color, ok := fills[state]; ok {
		return color
	}
	return failedFill
}

// Mermaid returns the lines of a graph as a Mermaid flowchart.
func Mermaid(nodes []graph.Node) []string {
	lines, at, states := []string{"flowchart TD"}, map[string]int{}, map[string]bool{}
	for i, n := range nodes {
		at[n.Name] = i
		open, shut := "[", "]"
		if n.Many {
			open, shut = "[[", "]]"
		}
		label, class := n.Name, ""
		if n.State != "" {
			label += "<br/>" + words.Sign(n.State) + " " + n.State
			class = ":::" + n.Tone()
			states[n.Tone()] = true
		}
		lines = append(lines, fmt.Sprintf(`  t%d%s"%s"%s%s`, i, open, label, shut, class))
	}
	for i, n := range nodes {
		for _, parent := range n.After {
			if p, ok := at[parent]; ok {
				lines = append(lines, fmt.Sprintf("  t%d --> t%d", p, i))
			}
		}
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		lines = append(lines, fmt.Sprintf("  classDef %s fill:%s,stroke:#666666", state, fill(state)))
	}
	return lines
}

// DOT returns the lines of a graph in the Graphviz language.
func DOT(name string, nodes []graph.Node) []string {
	lines := []string{"digraph " + strconv.Quote(name) + " {", `  node [shape=box, style="rounded,filled"];`}
	drawn := map[string]bool{}
	for _, n := range nodes {
		drawn[n.Name] = true
		label, borders := n.Name, ""
		if n.State != "" {
			label += "\n" + n.State
		}
		if n.Many {
			borders = ", peripheries=2"
		}
		lines = append(lines, fmt.Sprintf(`  %q [label=%q, fillcolor=%q%s];`, n.Name, label, fill(n.Tone()), borders))
	}
	for _, n := range nodes {
		for _, parent := range n.After {
			if drawn[parent] {
				lines = append(lines, fmt.Sprintf("  %q -> %q;", parent, n.Name))
			}
		}
	}
	return append(lines, "}")
}

package web

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"switchyard/drawing/graph"
	"switchyard/drawing/svg"
	v1 "switchyard/proto/switchyard/v1"
)

// definitionGraph is the graph of the tasks of a definition.
type definitionGraph struct {
	Label string
	// Drawing is an SVG; drawing/svg has escaped its text.
	Drawing template.HTML
}

// newDefinitionGraph draws the tasks of a definition. Each task links to its line in the text if the line is shown.
func newDefinitionGraph(def *v1.Definition, text string) definitionGraph {
	lines := taskLines(text)
	nodes := make([]graph.Node, 0, v1.CountTasks(def))
	for _, name := range v1.TaskNames(def) {
		task := v1.TaskNamed(def, name)
		nodes = append(nodes, graph.Node{
			Name: name, After: task.GetDependsOn(), Note: task.GetType(), Many: task.GetParallel() != nil || task.GetForeach() != nil,
			Finally: v1.IsInFinally(def, name),
		})
	}
	graph.LinkFinally(nodes)
	label := "Tasks of " + def.GetName()
	return definitionGraph{label, template.HTML(svg.Graph(graph.NewLayout(nodes), nodes, svg.GraphOptions{
		Name: label,
		Href: func(task string) string {
			if line := lines[task]; line > 0 && line <= maxListed {
				return fmt.Sprintf("#line-%d", line)
			}
			return ""
		},
	}))}
}

// taskLines returns the line at which each task starts in the output of definition.Print.
func taskLines(text string) map[string]int {
	lines, inTasks, number := map[string]int{}, false, 0
	for line := range strings.Lines(text) {
		number++
		if line[0] != ' ' && line[0] != '\n' {
			inTasks = line == "tasks:\n" || line == "finally:\n"
		}
		name, ok := strings.CutPrefix(line, "  ")
		if !inTasks || !ok || name[0] == ' ' {
			continue
		}
		name, _, _ = strings.Cut(name, ":")
		if unquoted, err := strconv.Unquote(name); err == nil {
			name = unquoted
		}
		lines[name] = number
	}
	return lines
}

package graph

import (
	"time"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// Node is a task in the drawing of a graph.
type Node struct {
	Name string
	// After holds the tasks that it waits for. Tasks that are not drawn are ignored.
	After []string
	// State is empty in a definition.
	State string
	// Away marks a lost task that continues once its node is back.
	Away bool
	// Note is a one-line remark; may be empty.
	Note string
	// Many marks a fanned-out task.
	Many bool
}

// Tone returns the state whose colour the node has. A task that is away does not count as failed.
func (n Node) Tone() string {
	if n.Away {
		return v1.TaskPaused
	}
	return n.State
}

// NodesOf returns the tasks of a run in the order of ByDepth. If now is zero, the notes omit
// remaining times.
func NodesOf(run *v1.Run, now time.Time) []Node {
	tasks := run.GetTasks()
	nodes := make([]Node, 0, len(tasks))
	for _, name := range ByDepth(tasks) {
		t := tasks[name]
		text := words.Note(t, now)
		if t.GetNode() != "" {
			text = words.JoinNote("on "+t.GetNode(), text)
		}
		nodes = append(nodes, Node{Name: name, After: t.GetDependsOn(), State: t.GetState(), Away: v1.IsTaskAway(t.GetState(), t.GetNotice()), Note: text, Many: words.IsFannedOut(t)})
	}
	return nodes
}

package tui

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// Node is a task in the drawing of a graph.
type Node struct {
	Name string
	// After are the tasks that it waits for; those that are not drawn are left out.
	After []string
	// State is empty in a definition that is not being run.
	State string
	// Note is what there is to say about it, in one line; may be empty.
	Note string
	// Many: it is fanned out.
	Many bool
}

// NodesOf are the tasks of a run, parents before children.
func NodesOf(run *v1.Run, now time.Time) []Node {
	b := BoardOf(run)
	nodes := make([]Node, 0, len(b.tasks))
	for _, name := range b.order() {
		t := b.tasks[name]
		text := note(t, now)
		if t.GetNode() != "" {
			text = joinNote("on "+t.GetNode(), text)
		}
		nodes = append(nodes, Node{Name: name, After: t.GetDependsOn(), State: t.GetState(), Note: text, Many: FansOut(t)})
	}
	return nodes
}

// Sign is a state in one character, for those who do not see its colour.
func Sign(state string) string {
	switch state {
	case dag.StateCompleted:
		return "✓"
	case dag.StateStopped:
		return "■"
	case dag.StateRunning:
		return "●"
	case dag.StateAssigned:
		return "◐"
	case dag.StateQueued:
		return "◌"
	case "paused":
		return "‖"
	case dag.StatePending:
		return "○"
	case dag.StateSkipped:
		return "–"
	case dag.StateCancelled:
		return "⊘"
	case dag.StateRejected:
		return "⊗"
	case dag.StateDeadLetter:
		return "†"
	case dag.StateLost:
		return "?"
	case dag.StateKilled:
		return "×"
	case dag.StateKilledOOM:
		return "!"
	case "":
		return "○" // of a definition
	}
	return "✗"
}

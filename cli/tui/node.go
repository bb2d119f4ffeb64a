package tui

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Node is a task in the drawing of a graph.
type Node struct {
	Name string
	// After are the tasks that it waits for; those that are not drawn are left out.
	After []string
	// State is empty in a definition that is not being run.
	State string
	// Away: it is lost only until its node is back.
	Away bool
	// Note is what there is to say about it, in one line; may be empty.
	Note string
	// Many: it is fanned out.
	Many bool
}

// Tone returns the state whose colour the node has. A task that is away has not failed.
func (n Node) Tone() string {
	if n.Away {
		return v1.TaskPaused
	}
	return n.State
}

// NodesOf are the tasks of a run, parents before children.
func NodesOf(run *v1.Run, now time.Time) []Node {
	b := StatusOf(run)
	nodes := make([]Node, 0, len(b.tasks))
	for _, name := range b.order() {
		t := b.tasks[name]
		text := note(t, now)
		if t.GetNode() != "" {
			text = joinNote("on "+t.GetNode(), text)
		}
		nodes = append(nodes, Node{Name: name, After: t.GetDependsOn(), State: t.GetState(), Away: v1.IsTaskAway(t.GetState(), t.GetNotice()), Note: text, Many: IsFannedOut(t)})
	}
	return nodes
}

// Sign is a state in one character, for those who do not see its colour.
func Sign(state string) string {
	switch state {
	case v1.TaskCompleted:
		return "✓"
	case v1.TaskStopped:
		return "■"
	case v1.TaskRunning:
		return "●"
	case v1.TaskAssigned:
		return "◐"
	case v1.TaskQueued:
		return "◌"
	case v1.TaskPaused:
		return "‖"
	case v1.TaskPending:
		return "○"
	case v1.TaskSkipped:
		return "–"
	case v1.TaskCancelled:
		return "⊘"
	case v1.TaskRejected:
		return "⊗"
	case v1.TaskDeadLetter:
		return "†"
	case v1.TaskLost:
		return "?"
	case v1.TaskKilled:
		return "×"
	case v1.TaskKilledOOM:
		return "!"
	case "":
		return "○" // of a definition
	}
	return "✗"
}

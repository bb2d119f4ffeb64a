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
	// Finally marks a task of `finally`, which starts when all others have ended.
	Finally bool
}

// maxLinks is the most tasks that those of `finally` are drawn after.
const maxLinks = 12

// LinkFinally adds to each node of `finally` that waits for no other the nodes that no other node waits for. If those are many, it adds one
// of them.
func LinkFinally(nodes []Node) {
	isParent := map[string]bool{}
	for _, n := range nodes {
		for _, parent := range n.After {
			isParent[parent] = true
		}
	}
	var last []string
	for _, n := range nodes {
		if !n.Finally && !isParent[n.Name] {
			last = append(last, n.Name)
		}
	}
	if len(last) > maxLinks {
		last = last[len(last)-1:]
	}
	for i := range nodes {
		if nodes[i].Finally && len(nodes[i].After) == 0 {
			nodes[i].After = last
		}
	}
}

// Tone returns the state whose colour the node has. A task that is away does not count as failed.
func (n Node) Tone() string {
	if n.Away {
		return v1.TaskPaused
	}
	return n.State
}

// NodesOf returns the tasks of a run in the order of ByDepth, with those of `finally` after all others. If now is zero, the notes omit
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
		nodes = append(nodes, Node{Name: name, After: t.GetDependsOn(), State: t.GetState(), Away: v1.IsTaskAway(t.GetState(), t.GetNotice()), Note: text, Many: words.IsFannedOut(t), Finally: t.GetFinally()})
	}
	LinkFinally(nodes)
	return nodes
}

package placement

import v1 "switchyard/proto/switchyard/v1"

// Node is a node of the fleet as it is reported to the queue.
type Node struct {
	// Snapshot is its newest, or what it said of itself when it registered. It
	// names the node, and must not be modified afterwards.
	Snapshot *v1.NodeSnapshot
	// State is one of the states of a node in the package names; empty: active.
	// Only an active node gets anything. One that is stale or draining may come
	// back, so that what only it can meet waits; one that is offline cannot.
	State string
	// Reason for a state other than active, such as "last beat 8 s ago"; it may be empty.
	Reason string
}

// stateNow is the state in which the queue takes the node.
func (n Node) stateNow() string {
	switch {
	case n.State != "" && n.State != v1.NodeActive:
		return n.State
	case n.Snapshot.GetDraining():
		return v1.NodeDraining
	}
	return v1.NodeActive
}

// stateObject is what a reason says of a node that is not active, after "is".
func (n *node) stateObject() string {
	if n.reason == "" {
		return n.state
	}
	return n.state + " (" + n.reason + ")"
}

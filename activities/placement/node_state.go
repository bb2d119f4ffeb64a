package placement

import v1 "switchyard/proto/switchyard/v1"

// Node is a node of the fleet, as reported to the queue.
type Node struct {
	// Snapshot is the node's newest snapshot, or the one that it registered with. It names the
	// node, and must not be modified after the call.
	Snapshot *v1.NodeSnapshot
	// State is the state of the node, one of the constants Node... of the package v1. "" means
	// active. Only an active node gets tasks. A stale, draining or restarting node may come back, so requests
	// that only such a node can meet wait; an offline node does not count.
	State string
	// Reason explains a state other than active, such as "last heartbeat 8 s ago". It may be "".
	Reason string
}

// stateNow returns the state that the queue uses for the node.
func (n Node) stateNow() string {
	switch {
	case n.State != "" && n.State != v1.NodeActive:
		return n.State
	case n.Snapshot.GetDraining():
		return v1.NodeDraining
	}
	return v1.NodeActive
}

// stateObject returns the text after "is" in a reason about a node that is not active.
func (n *node) stateObject() string {
	if n.reason == "" {
		return n.state
	}
	return n.state + " (" + n.reason + ")"
}

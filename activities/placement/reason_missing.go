package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// foundKind is a kind of capability that a node has only while it finds a certain object: an agent session or a cluster.
type foundKind struct {
	of         func(key string) (name string, ok bool)
	capability func(name string) string
	// Format strings for the name of the object; offline and lost take the name of a node.
	missing, offline, lost, none string
	// noOther is appended after offline or lost if no node finds any other object of the kind.
	noOther string
}

var foundKinds = []*foundKind{
	{
		of: v1.SessionOfCapability, capability: v1.SessionCapability,
		missing: "no node has session %s", offline: ", which was on %s, now offline", lost: ", which was on %s and has ended",
		none: "no node has session %s, nor any other session; start one with `switchyard agent attach`", noOther: ", nor any other session; start one with `switchyard agent attach`",
	},
	{
		of: v1.ClusterOfCapability, capability: v1.ClusterCapability,
		missing: "no node reaches cluster %s", offline: ", which was reached by %s, now offline", lost: ", which %s no longer reaches; see the log of that node",
		none: "no node reaches any cluster; start a worker with --kube %s=KUBECONFIG",
	},
}

// found is an object that a request requires a node to find.
type found struct {
	*foundKind
	name string
}

// key returns the capability of the nodes that find the object.
func (f found) key() string { return f.capability(f.name) }

// missingFor returns an object that the request requires and no online node finds. The boolean is false if there is none.
func (rs *reasons) missingFor(s *spec) (found, bool) {
	for _, key := range slices.Sorted(maps.Keys(s.constraints.GetRequiresCapabilities())) {
		for _, kind := range foundKinds {
			name, ok := kind.of(key)
			if ok && !slices.ContainsFunc(rs.fleet.listed, func(n *node) bool { return n.state != v1.NodeOffline && n.has(key) }) {
				return found{kind, name}, true
			}
		}
	}
	return found{}, false
}

// has reports whether the node's snapshot lists a capability.
func (n *node) has(key string) bool {
	_, has := n.snap.GetCapabilities()[key]
	return has
}

// noteLost records the found capabilities that are missing from the node's next snapshot, and forgets those that are back.
func (n *node) noteLost(next *v1.NodeSnapshot) {
	for key := range next.GetCapabilities() {
		delete(n.lost, key)
	}
	for key := range n.snap.GetCapabilities() {
		if _, still := next.GetCapabilities()[key]; still || !isFound(key) {
			continue
		}
		if n.lost == nil {
			n.lost = map[string]struct{}{}
		}
		if len(n.lost) < maxLost {
			n.lost[key] = struct{}{}
		}
	}
}

// maxLost bounds the number of lost capabilities that are recorded for a node.
const maxLost = 32

// isFound reports whether a capability belongs to one of foundKinds.
func isFound(key string) bool {
	return slices.ContainsFunc(foundKinds, func(kind *foundKind) bool { _, ok := kind.of(key); return ok })
}

// missingReason explains what happened to an object that no node finds, and lists the objects of the same kind that nodes do
// find.
func (rs *reasons) missingReason(f found) string {
	nodes := map[string][]string{} // by the object that they find
	gone := ""
	for _, n := range rs.fleet.listed {
		online := n.state != v1.NodeOffline
		for key := range n.snap.GetCapabilities() {
			if other, ok := f.of(key); ok && online {
				nodes[other] = append(nodes[other], n.name)
			}
		}
		_, lost := n.lost[f.key()]
		switch {
		case !online && (lost || n.has(f.key())):
			gone = fmt.Sprintf(f.offline, n.name)
		case lost && gone == "":
			gone = fmt.Sprintf(f.lost, n.name)
		}
	}
	text := fmt.Sprintf(f.missing, f.name) + gone
	switch {
	case len(nodes) == 0 && gone == "":
		return bounded(fmt.Sprintf(f.none, f.name))
	case len(nodes) == 0:
		return bounded(text + f.noOther)
	}
	var there []string
	for _, other := range slices.Sorted(maps.Keys(nodes)) {
		names := nodes[other]
		if more := len(names) - namedNodes; more > 0 {
			names = append(names[:namedNodes:namedNodes], fmt.Sprintf("and %d more", more))
		}
		there = append(there, other+" (on "+strings.Join(names, ", ")+")")
	}
	if more := len(there) - namedNodes; more > 0 {
		there = append(there[:namedNodes], fmt.Sprintf("and %d more", more))
	}
	return bounded(text + "; available: " + strings.Join(there, ", "))
}

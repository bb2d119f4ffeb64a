package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// sessionOf returns the session of an agent that a class needs, or "" if it needs none.
func sessionOf(s *requestClass) string {
	for _, key := range slices.Sorted(maps.Keys(s.constraints.GetRequiresCapabilities())) {
		if id, ok := v1.SessionOfCapability(key); ok {
			return id
		}
	}
	return ""
}

// lacksSession reports whether the class needs a session that no node has.
func (q *Queue) lacksSession(s *requestClass) bool {
	id := sessionOf(s)
	return id != "" && !slices.ContainsFunc(q.listed, func(n *node) bool {
		_, has := n.snap.GetCapabilities()[v1.SessionCapability(id)]
		return has && n.state != v1.NodeOffline
	})
}

// sessionReason says which sessions there are instead of the one that the class needs.
func (q *Queue) sessionReason(s *requestClass) string {
	id := sessionOf(s)
	nodes := map[string][]string{} // by session
	lost := ""
	for _, n := range q.listed {
		for key := range n.snap.GetCapabilities() {
			other, ok := v1.SessionOfCapability(key)
			switch {
			case ok && n.state != v1.NodeOffline:
				nodes[other] = append(nodes[other], n.name)
			case other == id && ok:
				lost = n.name
			}
		}
	}
	text := "no node has session " + id
	if lost != "" {
		text += ", which was on " + lost + ", now offline"
	}
	if len(nodes) == 0 {
		return bounded(text + ", nor any other; `switchyard agent attach` begins one")
	}
	var there []string
	for _, other := range slices.Sorted(maps.Keys(nodes)) {
		there = append(there, other+" (on "+strings.Join(nodes[other], ", ")+")")
	}
	if more := len(there) - namedNodes; more > 0 {
		there = append(there[:namedNodes], fmt.Sprintf("and %d more", more))
	}
	return bounded(text + "; there is " + strings.Join(there, ", "))
}

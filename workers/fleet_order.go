package workers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// readOrder decides which entries are read next: expected nodes first, then urgent ones, then the one read longest ago.
// So the reads of a round do not grow with the fleet; a node of a large fleet is read only every few rounds.
type readOrder struct {
	// last holds when a node was last read or a read last failed. It is zero for a node that has not been read.
	last map[string]time.Time
	// urgent holds the nodes whose state in visibility differs from their last read, and those that have missed a
	// heartbeat.
	urgent map[string]bool
}

func newReadOrder() readOrder {
	return readOrder{last: map[string]time.Time{}, urgent: map[string]bool{}}
}

// set applies the nodes that visibility lists. seen holds the nodes that have been read.
func (t *readOrder) set(records map[string]*historyv1.NodeRecord, seen map[string]sighting) {
	for name, r := range records {
		t.last[name] = t.last[name] // a new node gets a zero time, so it comes first
		if s, ok := seen[name]; ok && (r.GetState() != s.entry.Record.GetState() ||
			r.GetRegistration().GetIncarnation() != s.entry.Record.GetRegistration().GetIncarnation()) {
			t.urgent[name] = true
		}
	}
	for name := range seen {
		if records[name] == nil {
			t.urgent[name] = true
		}
	}
	maps.DeleteFunc(t.last, func(name string, _ time.Time) bool {
		_, known := seen[name]
		return !known && records[name] == nil
	})
}

// forget drops a node that the registry does not know, until visibility lists it again.
func (t *readOrder) forget(name string) {
	delete(t.urgent, name)
	delete(t.last, name)
}

// areNew reports whether any node has never been read.
func (t *readOrder) areNew() bool {
	for _, at := range t.last {
		if at.IsZero() {
			return true
		}
	}
	return false
}

// tried records a read of a node, successful or not.
func (t *readOrder) tried(name string, at time.Time) {
	delete(t.urgent, name)
	t.last[name] = at
}

// next returns at most readsPerRound nodes to read now. Outside a regular round, these are only expected nodes and
// nodes that have never been read.
func (t *readOrder) next(expected map[string]time.Time, regular bool) []string {
	nodes := slices.Collect(maps.Keys(expected))
	for name, at := range t.last {
		if _, ok := expected[name]; !ok && (regular || at.IsZero()) {
			nodes = append(nodes, name)
		}
	}
	class := func(name string) int {
		_, ok := expected[name]
		switch {
		case ok:
			return 0
		case t.urgent[name]:
			return 1
		}
		return 2
	}
	slices.SortFunc(nodes, func(a, b string) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), t.last[a].Compare(t.last[b]), cmp.Compare(a, b))
	})
	return nodes[:min(len(nodes), readsPerRound)]
}

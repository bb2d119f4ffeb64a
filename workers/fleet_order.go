package workers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// readOrder decide whose entries are read next: expected nodes first, then urgent ones, then the one that has waited
// longest. So the reads of a round do not grow with the fleet: a node of a large one is read every so many rounds.
type readOrder struct {
	// last is when a node was last read, or when that was tried; the zero time where it has not been.
	last map[string]time.Time
	// urgent are the nodes that visibility lists otherwise than they were read, and those that have missed a heartbeat.
	urgent map[string]bool
}

func newReadOrder() readOrder {
	return readOrder{last: map[string]time.Time{}, urgent: map[string]bool{}}
}

// set takes what visibility lists, given the nodes that have been seen.
func (t *readOrder) set(records map[string]*v1.NodeRecord, seen map[string]sighting) {
	for name, r := range records {
		t.last[name] = t.last[name] // a new one has its first turn
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

// areNew reports whether there are nodes that have never been read.
func (t *readOrder) areNew() bool {
	for _, at := range t.last {
		if at.IsZero() {
			return true
		}
	}
	return false
}

// tried notes that a node was read, or that it could not be.
func (t *readOrder) tried(name string, at time.Time) {
	delete(t.urgent, name)
	t.last[name] = at
}

// next returns the nodes to read now, readsPerRound at most. Where the round is not a regular one, these are only
// expected nodes and those that have never been read.
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

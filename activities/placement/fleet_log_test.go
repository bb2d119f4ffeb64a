package placement

import "testing"

func TestLogIsReadFromAPositionUntilItGrowsLongerThanTheFleet(t *testing.T) {
	var l fleetLog
	l.setSize(2)
	a, b := &node{name: "a"}, &node{name: "b"}
	l.noteRoom(a)
	position := l.room.end()
	l.noteRoom(b)
	if nodes, ok := l.room.since(position); !ok || len(nodes) != 1 || nodes[0] != b {
		t.Errorf("since %d: %v, %v", position, nodes, ok)
	}
	if nodes, ok := l.room.since(l.room.end()); !ok || len(nodes) != 0 {
		t.Errorf("since the end: %v, %v", nodes, ok)
	}
	for range 3 {
		l.noteRoom(a)
	}
	if _, ok := l.room.since(position); ok {
		t.Error("the log has kept more entries than the fleet has nodes")
	}
	if nodes, ok := l.shape.since(0); !ok || len(nodes) != 0 || !l.hasNews() {
		t.Errorf("nodes %v have another shape, %v; news: %v", nodes, ok, l.hasNews())
	}
	if l.endPass(); l.hasNews() {
		t.Error("a pass leaves news")
	}
}

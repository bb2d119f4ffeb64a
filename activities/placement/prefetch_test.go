package placement

import (
	"slices"
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// brisk returns a queue with one node that has one slot and is prefetched to.
func brisk(t *testing.T) *Queue {
	t.Helper()
	c := newClock()
	q := newQueue(c, aNode("a", slots(1)))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("measured")})
	placeAll(t, q, "r")
	c.add(time.Millisecond)
	release(q, "r", "measured", 1)
	return q
}

// TestFillAheadKeepsPriorities checks that a node's queue never holds two priorities, because the
// node may start its tasks in any order.
func TestFillAheadKeepsPriorities(t *testing.T) {
	q := brisk(t)
	var reqs []*historyv1.TaskRequest
	for i, p := range []int32{1, 5, 3, 3, 9} {
		reqs = append(reqs, aTask(string(rune('a'+i)), withPriority(p)))
	}
	q.Request(Run{ID: "r"}, reqs)
	var passes [][]string
	for range 4 {
		nodes, _ := placeAll(t, q, "r")
		var placed []string
		for task := range nodes {
			placed = append(placed, task)
		}
		slices.Sort(placed)
		passes = append(passes, placed)
		for _, task := range placed {
			release(q, "r", task, 1)
		}
	}
	want := [][]string{{"e"}, {"b"}, {"c", "d"}, {"a"}}
	if !slices.EqualFunc(passes, want, slices.Equal) {
		t.Errorf("placed %v, want %v", passes, want)
	}
}

// TestFillAheadWaitsForTheMoreUrgent checks that a more urgent waiting request comes next, even
// where others could be prefetched, until it is withdrawn or the others become as urgent.
func TestFillAheadWaitsForTheMoreUrgent(t *testing.T) {
	like := func() []*historyv1.TaskRequest { return []*historyv1.TaskRequest{aTask("running"), aTask("next")} }
	urgent := aTask("urgent", withPriority(1), withCores(2))
	q := brisk(t)
	q.Request(Run{ID: "r"}, like()[:1])
	placeAll(t, q, "r")
	q.Request(Run{ID: "r"}, append(like()[1:], urgent))
	nodes, reasons := placeAll(t, q, "r")
	if len(nodes) > 0 || reasons["next"] != "0 of 1 nodes fit: a has no free slot of 1" {
		t.Fatalf("got %v %v: urgent is to come before next", nodes, reasons)
	}
	release(q, "r", "urgent", 1)
	if nodes, _ := placeAll(t, q, "r"); nodes["next"] != "a" {
		t.Errorf("got %v: nothing is more urgent than next", nodes)
	}

	elsewhere := aTask("urgent", withPriority(1), constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"gpu"} }))
	q = brisk(t)
	q.Request(Run{ID: "r"}, like()[:1])
	placeAll(t, q, "r")
	q.Request(Run{ID: "r"}, append(like()[1:], elsewhere))
	if nodes, _ := placeAll(t, q, "r"); nodes["next"] != "a" {
		t.Errorf("got %v: what cannot use the node keeps nobody from it", nodes)
	}
}

// TestReservedNodeIsOpenToTheNextRequest checks that a node that was kept from one request of a class is open to
// the next one, which may be as urgent as the requests that wait there.
func TestReservedNodeIsOpenToTheNextRequest(t *testing.T) {
	q := brisk(t)
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("running", withPriority(2))})
	placeAll(t, q, "r")
	q.SetNodes(live(aNode("a", slots(1)), aNode("b", slots(1))))
	like := func(task string, priority int32) []*historyv1.TaskRequest {
		r := aTask(task, withPriority(priority))
		r.AvoidNodes = []string{"b"}
		return []*historyv1.TaskRequest{r}
	}
	q.Request(Run{ID: "r"}, like("low", 0))
	if nodes, _ := placeAll(t, q, "r"); nodes["low"] != "b" {
		t.Fatalf("got %v: low may not wait behind what is more urgent", nodes)
	}
	q.Request(Run{ID: "r"}, like("next", 2))
	if nodes, reasons := placeAll(t, q, "r"); nodes["next"] != "a" {
		t.Errorf("got %v %v: next is as urgent as what runs there", nodes, reasons)
	}
}

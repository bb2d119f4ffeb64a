package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func requests(first, n int, changes ...func(*historyv1.TaskRequest)) []*historyv1.TaskRequest {
	var out []*historyv1.TaskRequest
	for i := range n {
		out = append(out, aTask(fmt.Sprintf("t%d", first+i), changes...))
	}
	return out
}

func TestNodesOfOneMachineShareIt(t *testing.T) {
	small := func(r *historyv1.TaskRequest) { r.Resources.MemoryMb = 3000 }
	tests := map[string]struct {
		change func(*historyv1.TaskRequest)
		placed int
	}{
		"cores":           {withCores(1), 4},
		"half cores":      {withCores(0.5), 8},
		"exact fractions": {withCores(0.8), 5},
		"no cores":        {withCores(0), 8}, // limited by the slots of both nodes
		"memory":          {small, 2},
		"GPUs":            {func(r *historyv1.TaskRequest) { r.Resources.Gpus = 1 }, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := newQueue(newClock(), aNode("a", onMachine("m"), gpus(3)), aNode("b", onMachine("m"), gpus(3)))
			q.Request(Run{ID: "r"}, requests(0, 20, tt.change))
			if nodes, _ := placeAll(t, q, "r"); len(nodes) != tt.placed {
				t.Errorf("placed %d, want %d: %v", len(nodes), tt.placed, nodes)
			}
		})
	}
}

// TestForeignAttemptsCount checks that after a restart of the queue all attempts in the snapshots
// count as foreign and hold their places.
func TestForeignAttemptsCount(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a", running("r", "x", 3), func(n *v1.NodeSnapshot) { n.ReservedCores = 2.5 }))
	q.Request(Run{ID: "r"}, requests(0, 4))
	if nodes, _ := placeAll(t, q, "r"); len(nodes) != 1 {
		t.Fatalf("placed %v beside 2.5 reserved cores of 4", nodes)
	}
	// The next snapshot also shows the new attempt, which must not count twice.
	q.SetNodes(live(aNode("a", running("r", "x", 3), running("r", "t0", 1),
		func(n *v1.NodeSnapshot) { n.ReservedCores = 3.5 })))
	if nodes, _ := placeAll(t, q, "r"); len(nodes) != 0 {
		t.Fatalf("placed %v beside 3.5 reserved cores of 4", nodes)
	}
	release(q, "r", "x", 3)
	if nodes, _ := placeAll(t, q, "r"); len(nodes) != 3 {
		t.Fatalf("placed %v, but three cores are free", nodes)
	}
}

// TestStaleSnapshotDoesNotBringReleasedAttemptBack checks that a snapshot from before a release does not bring the
// attempt back.
func TestStaleSnapshotDoesNotBringReleasedAttemptBack(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a", slots(1)))
	beat := int64(0)
	shown := func() []*v1.NodeSnapshot {
		beat++
		return []*v1.NodeSnapshot{aNode("a", slots(1), running("r", "t0", 1), func(n *v1.NodeSnapshot) { n.Sequence, n.ReservedCores = beat, 1 })}
	}
	q.Request(Run{ID: "r"}, requests(0, 1))
	placeAll(t, q, "r")
	c.add(5 * time.Second)
	release(q, "r", "t0", 1)
	q.SetNodes(live(shown()...))
	q.Request(Run{ID: "r"}, requests(1, 1))
	if nodes, reasons := placeAll(t, q, "r"); nodes["t1"] != "a" {
		t.Fatalf("t1 waits: %v", reasons)
	}
	release(q, "r", "t1", 1)
	// An attempt that still shows up long after the release is really running.
	c.add(11 * time.Second)
	q.SetNodes(live(shown()...))
	q.Request(Run{ID: "r"}, requests(2, 1))
	if nodes, _ := placeAll(t, q, "r"); len(nodes) > 0 {
		t.Errorf("placed %v beside an attempt that runs", nodes)
	}
}

func TestVanishedNodeKeepsWhatItHas(t *testing.T) {
	q := newQueue(newClock(), aNode("a", slots(1), onMachine("m")))
	q.Request(Run{ID: "r"}, requests(0, 1, withCores(3)))
	placeAll(t, q, "r")
	q.SetNodes(live(aNode("b", onMachine("m"))))
	q.Request(Run{ID: "r"}, requests(1, 1, withCores(3)))
	if nodes, _ := placeAll(t, q, "r"); len(nodes) > 0 {
		t.Fatalf("placed %v: the machine's cores are held", nodes)
	}
	release(q, "r", "t0", 1)
	if nodes, _ := placeAll(t, q, "r"); nodes["t1"] != "b" {
		t.Fatalf("got %v, want t1 on b", nodes)
	}
	if q.fleet.byName["a"] != nil {
		t.Error("a is gone and holds nothing, and is still kept")
	}
}

func TestUnseenAssignmentsTakeAvailableMemory(t *testing.T) {
	half := func(n *v1.NodeSnapshot) { n.Memory.AvailableMb = 4000 }
	big := func(r *historyv1.TaskRequest) { r.Resources.MemoryMb = 3000 }
	q := newQueue(newClock(), aNode("a", half))
	q.Request(Run{ID: "r"}, requests(0, 2, big))
	if nodes, reasons := placeAll(t, q, "r"); len(nodes) != 1 || reasons["t1"] != "0 of 1 nodes fit: a has 1000 MiB free of 3000 asked" {
		t.Fatalf("got %v %v", nodes, reasons)
	}
	// The figure already includes what is running.
	q.SetNodes(live(aNode("a", half, running("r", "t0", 1))))
	if nodes, _ := placeAll(t, q, "r"); nodes["t1"] != "a" {
		t.Errorf("got %v", nodes)
	}
}

func TestFillAhead(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a", slots(2)), aNode("b", slots(2), labels("other")))
	onA := constrained(func(con *v1.Constraints) { con.TargetNode = "a" })
	q.Request(Run{ID: "r"}, requests(0, 9, onA))
	if nodes, _ := placeAll(t, q, "r"); len(nodes) != 2 {
		t.Fatalf("placed %v before any attempt was measured", nodes)
	}
	c.add(200 * time.Millisecond)
	release(q, "r", "t0", 1)
	if nodes, _ := placeAll(t, q, "r"); len(nodes) != 3 {
		t.Fatalf("placed %v, want three: four are twice the slots", nodes)
	}
	// Nothing waits on a node while another has a free slot.
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("free", withPriority(9))})
	release(q, "r", "t1", 1)
	if nodes, _ := placeAll(t, q, "r"); nodes["free"] != "b" {
		t.Fatalf("got %v, want free on b", nodes)
	}
	// A single long attempt disables prefetching, whatever the mean is.
	c.add(time.Second)
	release(q, "r", "t2", 1)
	if q.fleet.byName["a"].mean >= time.Second {
		t.Fatalf("the mean is %v: the test needs a short one", q.fleet.byName["a"].mean)
	}
	if nodes, _ := placeAll(t, q, "r"); len(nodes) > 0 {
		t.Errorf("placed %v behind an attempt of more than 1 s", nodes)
	}
}

// TestFreeSlotWinsOverBetterScore checks that a free slot wins over a better score on a node where the
// request would have to wait.
func TestFreeSlotWinsOverBetterScore(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a", slots(1)), aNode("b", slots(8), func(n *v1.NodeSnapshot) { n.Cpu.UsagePercent = 100 }))
	q.Request(Run{ID: "r"}, requests(0, 1))
	placeAll(t, q, "r")
	c.add(time.Millisecond)
	release(q, "r", "t0", 1)
	q.Request(Run{ID: "r"}, requests(1, 3))
	nodes, _ := placeAll(t, q, "r")
	if diff := cmp.Diff(map[string]string{"t1": "a", "t2": "b", "t3": "b"}, nodes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFillAheadNeverWithMemoryOrGPUs(t *testing.T) {
	tests := map[string]func(*historyv1.TaskRequest){
		"memory": func(r *historyv1.TaskRequest) { r.Resources.MemoryMb = 8192 },
		"GPUs":   func(r *historyv1.TaskRequest) { r.Resources.Gpus = 1 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			q := newQueue(newClock(), aNode("a", gpus(1)))
			q.Request(Run{ID: "r"}, requests(0, 3, change))
			placeAll(t, q, "r")
			release(q, "r", "t0", 1)
			if nodes, _ := placeAll(t, q, "r"); len(nodes) != 1 {
				t.Errorf("placed %v, want one", nodes)
			}
		})
	}
}

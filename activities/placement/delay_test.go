package placement

import (
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func refusedTimes(k int32) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Refusals, r.Claim = k, k+1 }
}

// TestRefusedNodeIsLeftOut checks that a node that has refused a task gets no equal request until
// its next heartbeat.
func TestRefusedNodeIsLeftOut(t *testing.T) {
	beat := func(sequence int64) *v1.NodeSnapshot {
		return aNode("a", func(n *v1.NodeSnapshot) { n.Sequence = sequence })
	}
	worse := aNode("b", func(n *v1.NodeSnapshot) { n.Cpu.UsagePercent, n.Sequence = 100, 1 })
	q := newQueue(newClock(), beat(7), worse)
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", withMemory(100))})
	if nodes, _ := placeAll(t, q, "r"); nodes["t"] != "a" {
		t.Fatalf("got %v", nodes)
	}
	end(q, "t", "refused")
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", withMemory(100), refusedTimes(1)), aTask("other", withMemory(100)), aTask("smaller")})
	q.Request(Run{ID: "r2"}, []*historyv1.TaskRequest{aTask("t", withMemory(100))})
	nodes, _ := placeAll(t, q, "r")
	if nodes["t"] != "b" || nodes["other"] != "b" || nodes["smaller"] != "a" {
		t.Errorf("got %v: what a has no room for goes to b", nodes)
	}
	if nodes, _ := placeAll(t, q, "r2"); nodes["t"] != "b" {
		t.Errorf("got %v: it is the same for another run", nodes)
	}

	q = newQueue(newClock(), beat(7))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t")})
	placeAll(t, q, "r")
	end(q, "t", "refused")
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", refusedTimes(1))})
	if nodes, reasons := placeAll(t, q, "r"); reasons["t"] != "0 of 1 nodes fit: a has refused it because it had no room" {
		t.Errorf("got %v %v", nodes, reasons)
	}
	q.SetNodes(live(beat(7)))
	if nodes, _ := placeAll(t, q, "r"); len(nodes) > 0 {
		t.Errorf("got %v: the snapshot is the old one", nodes)
	}
	q.SetNodes(live(beat(8)))
	if nodes, _ := placeAll(t, q, "r"); nodes["t"] != "a" {
		t.Errorf("got %v after a new snapshot", nodes)
	}
}

func TestDelayOf(t *testing.T) {
	want := []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
		1600 * time.Millisecond, 3200 * time.Millisecond, 5 * time.Second, 5 * time.Second}
	for refusals, d := range want {
		if got := delayOf(int32(refusals)); got != d {
			t.Errorf("%d refusals: %v, want %v", refusals, got, d)
		}
	}
	if got := delayOf(1 << 30); got != 5*time.Second {
		t.Errorf("very many refusals: %v", got)
	}
}

func TestSecondRefusalWaits(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a"))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("once", refusedTimes(1)), aTask("twice", refusedTimes(2)), aTask("thrice", refusedTimes(3))})
	nodes, reasons := placeAll(t, q, "r")
	if len(nodes) != 1 || nodes["once"] != "a" {
		t.Fatalf("got %v", nodes)
	}
	if want := "waits for 100ms: nodes had no room for it 2 times in a row"; reasons["twice"] != want || len(reasons) != 2 {
		t.Errorf("reasons %v", reasons)
	}
	// A repeated request gets the same reason and does not restart the delay.
	c.add(60 * time.Millisecond)
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("twice", refusedTimes(2))})
	if _, reasons := placeAll(t, q, "r"); len(reasons) != 1 {
		t.Errorf("asked again, and told %v", reasons)
	}
	at, ok := q.NextDeadline()
	if !ok || at.Sub(c.now()) != 40*time.Millisecond {
		t.Fatalf("deadline in %v, %v", at.Sub(c.now()), ok)
	}
	c.t = at
	if nodes, _ := placeAll(t, q, "r"); len(nodes) != 1 || nodes["twice"] != "a" {
		t.Errorf("got %v", nodes)
	}
	q.Forget("r")
	if _, ok := q.NextDeadline(); ok || len(q.demand.delayed) > 0 {
		t.Error("what is forgotten still waits")
	}
}

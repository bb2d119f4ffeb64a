package placement

import (
	"slices"
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// end releases a claim of run r with an outcome.
func end(q *Queue, task, outcome string) {
	q.Release("r", []*historyv1.ClaimRef{{Task: task, Claim: 1, Outcome: outcome}})
}

// tries places one task after another on the queue's only node. Each attempt takes a second and ends with the
// next of the outcomes.
func tries(t *testing.T, c *clock, q *Queue, first int, outcomes ...string) {
	t.Helper()
	for i, outcome := range outcomes {
		q.Request(Run{ID: "r"}, requests(first+i, 1))
		nodes, reasons := placeAll(t, q, "r")
		if len(nodes) != 1 {
			t.Fatalf("task %d waits: %v", first+i, reasons)
		}
		c.add(time.Second)
		end(q, requests(first+i, 1)[0].Task, outcome)
	}
}

func TestBench(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a"))
	tries(t, c, q, 0, "system", "system", "done", "system", "system")
	if got := q.Benched(); len(got) != 0 {
		t.Fatalf("benched %v: never three times in a row", got)
	}
	for round, length := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		// A node that fails again within the window is benched immediately.
		for try := 0; len(q.Benched()) == 0; try++ {
			if failed := round > 0 && round < 4 && try == 1; failed || try == benchAfter {
				t.Fatalf("round %d: not benched after %d failures", round, try)
			}
			tries(t, c, q, 100*round+100+try, "system")
		}
		until := c.now().Add(length)
		if got := q.Benched(); !got["a"].Equal(until) {
			t.Fatalf("round %d: benched %v, want until %v", round, got, until)
		}
		q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("pinned", withClaim(int32(round+1)), pinned("a"))})
		nodes, reasons := placeAll(t, q, "r")
		want := "0 of 1 nodes fit: a is benched until " + until.UTC().Format("15:04:05 UTC") + " after 3 failures of the node"
		if len(nodes) > 0 || reasons["pinned"] != want {
			t.Fatalf("round %d: got %v %v, want %q", round, nodes, reasons, want)
		}
		at, ok := q.NextDeadline()
		if !ok || !at.Equal(until) {
			t.Fatalf("round %d: deadline %v %v, want %v", round, at, ok, until)
		}
		c.t = at
		if nodes, _ := placeAll(t, q, "r"); nodes["pinned"] != "a" || len(q.Benched()) != 0 {
			t.Fatalf("round %d: got %v after the bench", round, nodes)
		}
		q.Release("r", []*historyv1.ClaimRef{{Task: "pinned", Claim: int32(round + 1), Outcome: "moved"}})
	}
	tries(t, c, q, 9000, "done", "system", "system", "system")
	if got := q.Benched()["a"]; !got.Equal(c.now().Add(firstBench)) {
		t.Errorf("benched until %v: a task that ran starts it anew", got)
	}
}

// TestOneFaultIsOneFailure checks that all attempts that a dying node takes down count as one failure.
func TestOneFaultIsOneFailure(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a"), aNode("b"))
	q.Request(Run{ID: "r"}, requests(0, 4, pinned("a")))
	placeAll(t, q, "r")
	c.add(20 * time.Second)
	for _, req := range requests(0, 4) {
		end(q, req.Task, "system")
		c.add(time.Second)
	}
	if got := q.Benched(); len(got) > 0 {
		t.Errorf("benched %v", got)
	}
}

func TestOldFailuresDoNotCount(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a"))
	tries(t, c, q, 0, "system", "system")
	c.add(benchWindow)
	tries(t, c, q, 2, "system")
	if got := q.Benched(); len(got) > 0 {
		t.Errorf("benched %v", got)
	}
}

// TestBenchOutlivesTheEntry checks that a node cannot shed its failures by leaving and registering again.
func TestBenchOutlivesTheEntry(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a"))
	tries(t, c, q, 0, "system", "system", "system")
	q.SetNodes(nil)
	if got := q.Benched(); len(got) != 0 {
		t.Errorf("benched %v: no node is there", got)
	}
	q.SetNodes(live(aNode("a")))
	if got := q.Benched(); len(got) != 1 {
		t.Errorf("benched %v, want a", got)
	}
}

// TestFailuresOfForeignAttemptsCountOnce checks that failures of attempts that the previous queue had placed count once.
func TestFailuresOfForeignAttemptsCountOnce(t *testing.T) {
	c := newClock()
	q := New(Options{Now: c.now})
	q.SetNodes(live(aNode("a", running("o", "1", 1), running("o", "2", 1), running("o", "3", 1))))
	c.add(time.Second)
	for _, task := range []string{"1", "2", "3"} {
		q.Release("o", []*historyv1.ClaimRef{{Task: task, Claim: 1, Outcome: "system"}})
	}
	if len(q.Benched()) > 0 {
		t.Error("benched for one fault")
	}
	tries(t, c, q, 0, "system", "system")
	if len(q.Benched()) != 1 {
		t.Error("not benched although the first fault was the third")
	}
}

// TestSettledReportsOutcomesOfDispatches checks that Options.Settled gets the outcomes of dispatches, and that Suspicions counts
// those that a node did not accept.
func TestSettledReportsOutcomesOfDispatches(t *testing.T) {
	var told []string
	c := newClock()
	q := newQueue(c, aNode("a"))
	q.fleet.healths.settled = func(node, outcome string) { told = append(told, node+" "+outcome) }
	tries(t, c, q, 0, "lost", "suspect", "done", "suspect", "")
	if want := []string{"a lost", "a suspect", "a done", "a suspect", "a "}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if got := q.Suspicions(); len(got) != 1 || got["a"] != 2 {
		t.Errorf("suspicions: %v", got)
	}
}

func TestHealthRecordOutlivesItsNodeWhileItsFailuresCount(t *testing.T) {
	c, known := newClock(), map[string]*node{"a": {name: "a"}, "b": {name: "b"}}
	hs := newHealths(func(name string) *node { return known[name] }, &fleetLog{}, func(string, string) {})
	for range benchAfter {
		hs.settle(known["a"], c.now(), v1.OutcomeSystem, c.now())
		c.add(time.Second)
	}
	end, ok := hs.nextEnd()
	if !ok || hs.healthOf("a") == nil || !hs.log.changed || end.Sub(c.now()) != firstBench-time.Second {
		t.Fatalf("the bench ends at %v, %v", end, ok)
	}
	delete(known, "a")
	if _, ok := hs.nextEnd(); ok {
		t.Error("the end of the bench of a node that has left is a deadline")
	}
	hs.settle(known["b"], c.now(), v1.OutcomeLost, c.now())
	if hs.healthOf("a") == nil {
		t.Error("the failures of a were forgotten when it left")
	}
	c.add(benchWindow)
	hs.settle(known["b"], c.now(), v1.OutcomeDone, c.now())
	hs.settle(known["b"], c.now(), v1.OutcomeLost, c.now())
	if hs.healthOf("a") != nil || hs.healthOf("b") == nil {
		t.Error("the record of a is kept although its failures no longer count")
	}
}

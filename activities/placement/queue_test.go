package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestOrderAcrossRuns(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a", slots(1)))
	old, older := c.now().Add(-time.Minute), c.now().Add(-time.Hour)
	q.Request(Run{ID: "r1"}, []*historyv1.TaskRequest{aTask("young"), aTask("old", queuedAt(old))})
	q.Request(Run{ID: "r2"}, []*historyv1.TaskRequest{aTask("older", queuedAt(older)), aTask("urgent", withPriority(1), withCores(2))})
	var order []string
	for range 4 {
		for _, runID := range q.Place() {
			placed, _ := q.Take(runID)
			for _, a := range placed {
				order = append(order, a.Task)
				c.add(2 * time.Second)
				release(q, runID, a.Task, a.Claim)
			}
		}
	}
	if want := []string{"urgent", "older", "old", "young"}; !slices.Equal(order, want) {
		t.Errorf("placed in the order %v, want %v", order, want)
	}
}

func TestRequestIsIdempotent(t *testing.T) {
	q := newQueue(newClock(), aNode("a", slots(1)))
	reqs := []*historyv1.TaskRequest{aTask("t1"), aTask("t2")}
	for range 3 {
		q.Request(Run{ID: "r"}, reqs)
		nodes, reasons := placeAll(t, q, "r")
		if nodes["t1"] != "a" || len(nodes) != 1 || reasons["t2"] == "" {
			t.Fatalf("got %v %v: the same request must get the same answer", nodes, reasons)
		}
	}
	if nodes, reasons := placeAll(t, q, "r"); len(nodes)+len(reasons) > 0 {
		t.Errorf("got %v %v although nothing was asked", nodes, reasons)
	}
	release(q, "r", "t1", 1)
	if nodes, _ := placeAll(t, q, "r"); nodes["t2"] != "a" {
		t.Errorf("got %v: the place of t1 is free", nodes)
	}
}

func TestNewerClaimReplaces(t *testing.T) {
	q := newQueue(newClock(), aNode("a", slots(1)))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t")})
	placeAll(t, q, "r")
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", withClaim(2))})
	q.Place()
	placed, _ := q.Take("r")
	if len(placed) != 1 || placed[0].Claim != 2 {
		t.Fatalf("got %v, want claim 2 in the place of claim 1", placed)
	}
	release(q, "r", "t", 1)
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t")})
	if nodes, reasons := placeAll(t, q, "r"); len(nodes)+len(reasons) > 0 {
		t.Errorf("claim 1 is over, and was answered with %v %v", nodes, reasons)
	}
	if n := q.fleet.byName["a"]; n.tasks != 1 {
		t.Errorf("%d tasks are held, want that of claim 2", n.tasks)
	}
}

// TestReleasedClaimIsNotPlaced checks that a request that arrives after the release of its claim is
// not placed.
func TestReleasedClaimIsNotPlaced(t *testing.T) {
	q := newQueue(newClock(), aNode("a"))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t")})
	release(q, "r", "t", 1)
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t")})
	if nodes, reasons := placeAll(t, q, "r"); len(nodes)+len(reasons) > 0 {
		t.Errorf("got %v %v", nodes, reasons)
	}
}

func TestKnowsAndForget(t *testing.T) {
	q := newQueue(newClock(), aNode("a", slots(1)))
	release(q, "r", "t", 1)
	if q.HasRun("r") {
		t.Error("a release makes a run known")
	}
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t1"), aTask("t2")})
	q.Place()
	if !q.HasRun("r") {
		t.Error("the run is not known")
	}
	q.Forget("r")
	q.Forget("r")
	if q.HasRun("r") || q.fleet.byName["a"].tasks != 0 || len(q.Place()) > 0 {
		t.Error("the run is still known, holds something or has news")
	}
}

func TestAvoidedNodes(t *testing.T) {
	avoid := func(r *historyv1.TaskRequest) { r.AvoidNodes = []string{"a"} }
	q := newQueue(newClock(), aNode("a"), aNode("b", slots(1), func(n *v1.NodeSnapshot) { n.Cpu.UsagePercent = 90 }))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t1", avoid), aTask("t2", avoid)})
	got, _ := placeAll(t, q, "r")
	if diff := cmp.Diff(map[string]string{"t1": "b", "t2": "a"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTieBreakByName(t *testing.T) {
	q := newQueue(newClock(), aNode("c"), aNode("b"), aNode("a"))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t1"), aTask("t2"), aTask("t3"), aTask("t4")})
	got, _ := placeAll(t, q, "r")
	if diff := cmp.Diff(map[string]string{"t1": "a", "t2": "b", "t3": "c", "t4": "a"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGivenUp(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a"))
	timeout := func(d time.Duration) func(*historyv1.TaskRequest) {
		return func(r *historyv1.TaskRequest) { r.PlacementTimeout = durationpb.New(d) }
	}
	impossible := constrained(func(con *v1.Constraints) { con.NodeLabels = []string{"gpu"} })
	busy := withCores(4)
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{
		aTask("soon", impossible, timeout(10*time.Second)), aTask("late", impossible, timeout(time.Minute)),
		aTask("never", impossible), aTask("first", busy), aTask("busy", busy, timeout(time.Second)),
	})
	placeAll(t, q, "r")
	if at, ok := q.NextDeadline(); !ok || !at.Equal(c.now().Add(10*time.Second)) {
		t.Fatalf("deadline %v %v", at, ok)
	}
	c.add(10*time.Second - 1)
	if runs := q.Place(); len(runs) > 0 {
		t.Fatalf("too early, and news for %v", runs)
	}
	// While a node fits, no request is impossible, and the time-out starts anew.
	q.SetNodes(live(aNode("a"), aNode("b", labels("gpu"), slots(1), running("o", "t", 1))))
	c.add(time.Minute)
	if _, reasons := placeAll(t, q, "r"); len(reasons) < 3 {
		t.Fatalf("got %v: all three should know that it is no longer impossible", reasons)
	}
	if _, ok := q.NextDeadline(); ok {
		t.Error("a deadline although nothing is impossible")
	}
	q.SetNodes(live(aNode("a")))
	placeAll(t, q, "r")
	c.add(10 * time.Second)
	for range 2 {
		q.Place()
		_, stuck := q.Take("r")
		stuck = slices.DeleteFunc(stuck, func(w *historyv1.Waiting) bool { return w.GetTask() == "busy" }) // which learns that b has left
		if len(stuck) != 1 || stuck[0].Task != "soon" || !stuck[0].GivenUp ||
			stuck[0].Reason != "no node could ever fit: a lacks label gpu" {
			t.Fatalf("got %v", stuck)
		}
		// The report may be lost: a repeated request gets it again.
		q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("soon", impossible, timeout(10*time.Second))})
	}
	if at, ok := q.NextDeadline(); !ok || !at.Equal(c.now().Add(50*time.Second)) {
		t.Errorf("deadline in %v, %v", at.Sub(c.now()), ok)
	}
	c.add(time.Hour)
	q.Place()
	_, stuck := q.Take("r")
	if given := slices.DeleteFunc(stuck, func(w *historyv1.Waiting) bool { return !w.GivenUp }); len(given) != 2 {
		t.Errorf("given up: %v, want soon (asked again) and late", given)
	}
	if _, ok := q.NextDeadline(); ok {
		t.Error("a deadline although all that may be given up was")
	}
}

// TestLastChangeOfTheFleetIsReported checks that a reason does not stay out of date because the fleet changed soon after the last
// report and not again.
func TestLastChangeOfTheFleetIsReported(t *testing.T) {
	c := newClock()
	q := newQueue(c)
	is := func(state, reason string) {
		q.SetNodes([]Node{{Snapshot: aNode("b"), State: state, Reason: reason}})
	}
	is(v1.NodeDraining, "its worker stops")
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", pinned("b"))})
	if _, reasons := placeAll(t, q, "r"); reasons["t"] != "0 of 1 nodes fit: b is draining (its worker stops)" {
		t.Fatalf("at first %v", reasons)
	}
	is(v1.NodeRestarting, "until 12:03:10 UTC")
	if _, reasons := placeAll(t, q, "r"); len(reasons) > 0 {
		t.Errorf("at once %v", reasons)
	}
	at, ok := q.NextDeadline()
	if !ok || at.Sub(c.now()) > 10*time.Second {
		t.Fatalf("the next report is in %v, %t", at.Sub(c.now()), ok)
	}
	c.add(at.Sub(c.now()))
	if _, reasons := placeAll(t, q, "r"); reasons["t"] != "no node fits until b is back: b is restarting (until 12:03:10 UTC)" {
		t.Errorf("then %v", reasons)
	}
	if _, ok := q.NextDeadline(); ok {
		t.Error("a deadline although all is reported")
	}
}

// TestReasonChangesAreReportedSparingly checks that changes of wording with every snapshot are not all
// reported, because each report is an event in a history.
func TestReasonChangesAreReportedSparingly(t *testing.T) {
	c := newClock()
	q := New(Options{Now: c.now, ReasonInterval: 2 * time.Second})
	told := []int{}
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", constrained(func(con *v1.Constraints) { con.MinMemoryMb = 2048 }))})
	for second := range 20 {
		q.SetNodes(live(aNode("a", func(n *v1.NodeSnapshot) { n.Memory.AvailableMb = float64(second) })))
		_, reasons := placeAll(t, q, "r")
		if len(reasons) > 0 {
			told = append(told, second)
			if want := fmt.Sprintf("0 of 1 nodes fit: a has %d MiB available of 2048 asked", second); reasons["t"] != want {
				t.Errorf("got %q, want %q", reasons["t"], want)
			}
		}
		c.add(time.Second)
	}
	if want := []int{0, 2, 6, 14}; !slices.Equal(told, want) {
		t.Errorf("told in seconds %v, want %v", told, want)
	}
	q.SetNodes(live(aNode("a", labels("x"), func(n *v1.NodeSnapshot) { n.Memory.TotalMb = 1024 })))
	if _, reasons := placeAll(t, q, "r"); len(reasons) != 1 {
		t.Error("that it has become impossible was not told at once")
	}
}

// TestNoTimeoutWhileNodesAreExpected checks that no request is given up while nodes are about to
// register.
func TestNoTimeoutWhileNodesAreExpected(t *testing.T) {
	c := newClock()
	q := New(Options{Now: c.now, ReasonInterval: time.Hour})
	q.SetExpectingNodes(true)
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", withCores(8), func(r *historyv1.TaskRequest) {
		r.PlacementTimeout = durationpb.New(10 * time.Second)
	})})
	for range 3 {
		q.Place()
		q.Take("r")
		c.add(20 * time.Second)
	}
	q.Place()
	if _, stuck := q.Take("r"); len(stuck) > 0 {
		t.Fatalf("got %v although nodes are expected", stuck)
	}
	q.SetNodes(live(aNode("a")))
	q.SetExpectingNodes(false)
	q.Place()
	q.Take("r")
	c.add(10 * time.Second)
	q.Place()
	if _, stuck := q.Take("r"); len(stuck) != 1 || !stuck[0].GivenUp || !strings.Contains(stuck[0].Reason, "a has 4 cores") {
		t.Fatalf("got %v, want it given up", stuck)
	}
}

// TestTimeoutCountsFromTheRequest checks that a request gets its full time-out even if it joins
// requests that have long been impossible.
func TestTimeoutCountsFromTheRequest(t *testing.T) {
	c := newClock()
	q := newQueue(c, aNode("a"))
	ask := func(task string) {
		q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask(task, withCores(8), func(r *historyv1.TaskRequest) {
			r.PlacementTimeout = durationpb.New(10 * time.Second)
		})})
		q.Place()
	}
	ask("first")
	c.add(9 * time.Second)
	ask("second")
	q.Take("r")
	for _, task := range []string{"first", "second"} {
		at, _ := q.NextDeadline()
		c.t = at
		q.Place()
		if _, stuck := q.Take("r"); len(stuck) != 1 || stuck[0].Task != task || !stuck[0].GivenUp {
			t.Fatalf("got %v, want %s given up", stuck, task)
		}
	}
	if waited := c.now().Sub(newClock().now()); waited != 19*time.Second {
		t.Errorf("the second was given up after %v in all, want 19s", waited)
	}
}

package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

func parts(cpu, memory, disk, network, tasks float64) []*v1.ScorePart {
	return []*v1.ScorePart{{Name: "cpu", Value: cpu}, {Name: "memory", Value: memory}, {Name: "disk", Value: disk},
		{Name: "network", Value: network}, {Name: "tasks", Value: tasks}}
}

func checkExplain(t *testing.T, got, want *historyv1.ExplainResponse) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform(), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("explained (-want +got):\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	q := New(Options{Now: newClock().now})
	q.SetNodes(append(live(aNode("b", labels("gpu")), aNode("a", slots(1), running("o", "t", 1))),
		Node{Snapshot: aNode("c", labels("gpu")), State: v1.NodeStale, Reason: "last heartbeat 8 s ago"}))
	task := aTask("t", constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"gpu"} }))
	nodes := []*v1.NodeVerdict{
		{Name: "a", Reasons: []string{"lacks label gpu", "has no free slot of 1"}, Score: 70, Parts: parts(30, 30, 15, 0, -5)},
		{Name: "b", Feasible: true, Score: 75, Parts: parts(30, 30, 15, 0, 0)},
		{Name: "c", Reasons: []string{"is stale (last heartbeat 8 s ago)"}, Score: 75, Parts: parts(30, 30, 15, 0, 0)},
	}
	checkExplain(t, q.Explain("r", task), &historyv1.ExplainResponse{Nodes: nodes,
		Reason: "1 of 3 nodes fit: the task is placed next, after more urgent ones"})

	// What the task holds does not count against its node, and Explain restores it afterwards.
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{task})
	placeAll(t, q, "r")
	for range 2 {
		checkExplain(t, q.Explain("r", &historyv1.TaskRequest{Task: "t"}), &historyv1.ExplainResponse{Nodes: nodes, Chosen: "b", Held: true,
			Reason: "score 75.0: cpu 30.0, memory 30.0, disk 15.0, network 0.0, tasks 0.0"})
	}
	if n := q.fleet.byName["b"]; n.tasks != 1 || n.machine.holds != (amount{tasks: 1, milliCores: 1000}) {
		t.Errorf("after it was explained, b holds %d tasks and %+v", n.tasks, n.machine.holds)
	}

	// For the next task, the held resources do count.
	next := aTask("next", pinned("b"), withCores(4))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{next})
	placeAll(t, q, "r")
	got := q.Explain("r", next)
	if want := "0 of 1 nodes fit: b has 3 cores free of 4 asked"; got.Reason != want || got.Chosen != "" {
		t.Errorf("reason %q, want %q", got.Reason, want)
	}
	if v := got.Nodes[1]; v.Feasible || len(v.Reasons) != 1 || v.Reasons[0] != "has 3 cores free of 4 asked" || v.Score != 0 || v.Parts != nil {
		t.Errorf("verdict of b: %v", v)
	}
}

// TestExplainIgnoresWhatTheTaskItselfHolds checks that a task that holds all GPUs and NUMA nodes of its node is
// explained as fitting there.
func TestExplainIgnoresWhatTheTaskItselfHolds(t *testing.T) {
	q := newQueue(newClock(), aNode("a", slots(1), gpusOn(0, 0), numaNodes(1, 4, 8192)))
	task := aTask("t", withGPUs(2), withCores(4), withMemory(8192))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{task})
	placeAll(t, q, "r")
	got := q.Explain("r", task)
	if !got.Nodes[0].Feasible || got.Chosen != "a" {
		t.Errorf("got %v", got)
	}
	other := q.Explain("r", aTask("other", withGPUs(2), withCores(4), withMemory(8192)))
	if other.Nodes[0].Feasible || len(other.Nodes[0].Reasons) != 4 {
		t.Errorf("got %v, want slots, cores, memory and GPUs against it", other.Nodes[0])
	}
}

// TestExplainNamesNodeOfForeignTask explains a task that was placed before this queue existed.
func TestExplainNamesNodeOfForeignTask(t *testing.T) {
	q := newQueue(newClock(), aNode("a", slots(1), gpus(1), func(n *v1.NodeSnapshot) {
		n.Running = []*v1.RunningAttempt{{RunId: "r", Task: "t", Claim: 3, Cores: 4, Gpus: []int32{0}}}
	}))
	got := q.Explain("r", aTask("t", withGPUs(1), withCores(4)))
	if got.Chosen != "a" || got.Reason != "given to a before this placement queue took over" || !got.Nodes[0].Feasible {
		t.Errorf("got %v", got)
	}
	if got := q.Explain("r", aTask("u", withGPUs(1))); got.Chosen != "" || got.Nodes[0].Feasible {
		t.Errorf("got %v for another task", got)
	}
}

// TestExplainNamesASizeOnce checks that what is in use is no second reason against a node that is too small.
func TestExplainNamesASizeOnce(t *testing.T) {
	q := newQueue(newClock(), aNode("a"))
	got := q.Explain("r", aTask("t", withCores(99)))
	if reasons := got.Nodes[0].Reasons; len(reasons) != 1 || reasons[0] != "has 4 cores of 99 asked" {
		t.Errorf("the reasons are %q", reasons)
	}
}

func TestExplainOfImpossible(t *testing.T) {
	q := newQueue(newClock(), aNode("a"))
	got := q.Explain("r", aTask("t", pinned("nowhere")))
	if got.Reason != "no node could ever fit: there is no node nowhere" || len(got.Nodes) != 1 || got.Nodes[0].Feasible {
		t.Errorf("got %v", got)
	}
	if got := q.Explain("r", aTask("t", refusedTimes(3))); !got.Nodes[0].Feasible {
		t.Errorf("got %v", got)
	}
}

func TestWhatAnAssignmentSays(t *testing.T) {
	q := newQueue(newClock(), aNode("a", gpus(1), func(n *v1.NodeSnapshot) {
		n.Incarnation = "i1"
		n.Cpu.UsagePercent, n.Memory.AvailableMb = 3, 7645
		n.Network = &v1.NetworkSnapshot{BandwidthMbps: 1000}
	}, holding(-1, 0, 1)))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t1"), aTask("t2", withGPUs(1)), aTask("t3", pinned("a"))})
	q.Place()
	placed, _ := q.Take("r")
	want := []*historyv1.Assignment{
		{Task: "t1", Claim: 1, Node: "a", Queue: "node:a:cpu", Incarnation: "i1", Score: 77.1,
			Why: "score 77.1: cpu 29.1, memory 28.0, disk 15.0, network 10.0, tasks -5.0"},
		{Task: "t2", Claim: 1, Node: "a", Queue: "node:a:gpu", Incarnation: "i1", Score: 87.1, Gpus: []int32{0},
			Why: "score 87.1: cpu 29.1, memory 28.0, disk 15.0, network 10.0, gpu 15.0, tasks -10.0"},
		{Task: "t3", Claim: 1, Node: "a", Queue: "node:a:cpu", Incarnation: "i1", Why: "pinned to a"},
	}
	if diff := cmp.Diff(want, placed, protocmp.Transform(), cmpopts.EquateApprox(0, 0.01)); diff != "" {
		t.Errorf("placed (-want +got):\n%s", diff)
	}
}

// TestExplainSaysEachReasonOnce checks that a reason that several filters give is listed once.
func TestExplainSaysEachReasonOnce(t *testing.T) {
	q := New(Options{Now: newClock().now})
	q.SetNodes([]Node{{Snapshot: aNode("a"), State: v1.NodeOffline, Reason: names.NodeLeft}})
	if got := q.Explain("r", aTask("t")).GetNodes()[0].GetReasons(); len(got) != 1 || got[0] != "is offline (left)" {
		t.Errorf("reasons %q", got)
	}
}

// TestExplainNamesWhoElseHoldsTheMachine checks that a reason about free resources includes what
// other nodes of the machine hold.
func TestExplainNamesWhoElseHoldsTheMachine(t *testing.T) {
	shared := func(n *v1.NodeSnapshot) { n.Machine = "m" }
	q := newQueue(newClock(), aNode("a", shared), aNode("b", shared, holding(-1, 4, 1024)), aNode("c", func(n *v1.NodeSnapshot) { n.Machine = "other" }))
	for node, want := range map[string]string{
		"a": "has 0 cores free of 1 asked (on the same machine b holds 4)",
		"b": "has 0 cores free of 1 asked",
	} {
		task := aTask("t", pinned(node))
		q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{task})
		placeAll(t, q, "r")
		got := q.Explain("r", task)
		if want := "0 of 1 nodes fit: " + node + " " + want; got.Reason != want {
			t.Errorf("reason %q, want %q", got.Reason, want)
		}
		q.Release("r", []*historyv1.ClaimRef{{Task: "t", Claim: task.GetClaim()}})
	}
	task := aTask("all", withCores(3), constrained(func(c *v1.Constraints) { c.ForbiddenNodes = []string{"c"} }))
	got := q.Explain("r", task)
	for _, v := range got.Nodes {
		if v.GetName() == "a" && (len(v.GetReasons()) != 1 || v.GetReasons()[0] != "has 0 cores free of 3 asked (on the same machine b holds 4)") {
			t.Errorf("verdict of a: %v", v)
		}
	}
}

// TestExplainNamesTheWorkspace checks that a task goes to the node that has its workspace, or waits for that node, and that the
// explanation says so.
func TestExplainNamesTheWorkspace(t *testing.T) {
	q := newQueue(newClock(), aNode("a"), aNode("b", slots(1), running("o", "t", 1)))
	task := aTask("t")
	task.Workspace = &historyv1.PlacedWorkspace{Name: "build", Node: "b", Task: "compile"}
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{task})
	q.Place()
	got := q.Explain("r", task)
	if want := "0 of 2 nodes fit: a does not have workspace build; b has no free slot of 1"; got.Reason != want || got.Chosen != "" {
		t.Errorf("while b is busy: %q on %q, want %q", got.Reason, got.Chosen, want)
	}
	q.SetNodes([]Node{{Snapshot: aNode("a")}, {Snapshot: aNode("b"), State: v1.NodeOffline, Reason: "last heartbeat 1 m ago"}})
	q.Place()
	if got, want := q.Explain("r", task).Reason, "no node fits until b is back: a does not have workspace build; b is offline (last heartbeat 1 m ago)"; got != want {
		t.Errorf("while b is offline: %q, want %q", got, want)
	}
	q.SetNodes(live(aNode("a"), aNode("b")))
	placeAll(t, q, "r")
	if got, want := q.Explain("r", task), "shares workspace build on node b, chosen by task compile"; got.Reason != want || got.Chosen != "b" {
		t.Errorf("%q on %q, want %q", got.Reason, got.Chosen, want)
	}
}

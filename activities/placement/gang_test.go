package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// gangOf returns the requests of all members of a gang.
func gangOf(task string, size, perNode int, changes ...func(*historyv1.TaskRequest)) []*historyv1.TaskRequest {
	return tasks(task, size, append(changes, func(r *historyv1.TaskRequest) {
		r.Gang = &historyv1.GangRequest{Task: task, Size: int32(size), PerNode: int32(perNode)}
	})...)
}

// nodesOf returns the nodes of the placed instances of a task, sorted.
func (y *yard) nodesOf(runID, task string) []string {
	var nodes []string
	for key, node := range y.on {
		if key.run == runID && baseName(key.task) == task {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// trace returns everything that a decision against a gang must leave as it was.
func (y *yard) trace() map[string]string {
	out := map[string]string{}
	for _, all := range []map[string]*account{y.scheduler.accounts.owners, y.scheduler.accounts.groups, y.scheduler.accounts.runs} {
		for name, a := range all {
			out[fmt.Sprintf("account %s %v", name, a.isRun)] = fmt.Sprint(a.held, a.lately, a.at)
		}
	}
	for name, n := range y.fleet.byName {
		m := n.machine
		used := func(use v1.GPUUse) bool { return use != v1.GPUUse{} }
		out["node "+name] = fmt.Sprint(n.now, n.tasks, n.remotes, n.perRun, n.priorities, n.byAge.Len(), len(n.settled), n.mean,
			slices.Sorted(maps.Keys(n.perRun)), m.holds, m.foreign, m.unseenMB, slices.ContainsFunc(m.gpus, used), m.numa, m.reservation)
		for key := range n.claimed {
			out["claim "+name+fmt.Sprint(key)] = ""
		}
	}
	for key, s := range y.demand.classes.byKey {
		if s.gang == nil {
			p := &s.prospects
			out["class "+key] = fmt.Sprint(p.preferred.nodes, p.preferred.ready, p.preferred.open, p.room, s.waiting, s.kept, s.notice.reason)
		}
	}
	out["log"] = fmt.Sprint(y.fleet.log.room.end(), y.fleet.log.shape.end())
	waiting, placed := y.Counts()
	out["counts"] = fmt.Sprint(waiting, placed)
	return out
}

// TestGangIsPlacedAsAWhole checks that no member of a gang is placed before all have room, and that all are reported together.
func TestGangIsPlacedAsAWhole(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"), aNode("b"))
	y.ask("", "old", aTask("first", withCores(4)), aTask("second", withCores(2)))
	y.ask("", "g", gangOf("train", 3, 0, withCores(2))...)
	if on := y.nodesOf("g", "train"); len(on) > 0 {
		t.Fatalf("members are on %v, and the third has no room", on)
	}
	if got := y.end("old", "second"); len(got) > 0 {
		t.Fatalf("%v was placed on one node", got)
	}
	if got := y.end("old", "first"); !slices.Equal(got, []string{"train[0]", "train[1]", "train[2]"}) {
		t.Fatalf("%v was placed, want all members", got)
	}
	for i := range 3 {
		y.end("g", fmt.Sprintf("train[%d]", i))
	}
	if _, placed := y.Counts(); placed > 0 {
		t.Errorf("%d places are held after all members have ended", placed)
	}
	for key, s := range y.demand.classes.byKey {
		if s.gang != nil {
			t.Errorf("the queue keeps a class that no other request will be in: %q", key)
		}
	}
}

// TestNodesHaveNoMoreMembersThanAllowed checks per_node.
func TestNodesHaveNoMoreMembersThanAllowed(t *testing.T) {
	for perNode, want := range map[int][]string{0: {"a", "a", "a", "a"}, 1: nil, 2: {"a", "a", "b", "b"}, 3: {"a", "a", "a", "b"}} {
		y := newYard(t, Options{}, aNode("a"), aNode("b", func(n *v1.NodeSnapshot) { n.Cpu.UsagePercent = 90 }))
		y.ask("", "g", gangOf("train", 4, perNode)...)
		if on := y.nodesOf("g", "train"); !slices.Equal(on, want) {
			t.Errorf("perNode %d: the members are on %v, want %v", perNode, on, want)
		}
	}
}

// TestIncompleteGangWaitsForRequests checks that a gang waits for the requests of all members, and that a member whose request is
// dropped is missing again.
func TestIncompleteGangWaitsForRequests(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"), aNode("b"))
	gang := gangOf("train", 4, 0)
	y.ask("", "g", gang[:2]...)
	if want := "waits for the requests of 2 more members"; y.why["train[0]"] != want || y.why["train[1]"] != want {
		t.Errorf("it waits because %q, want %q", y.why, want)
	}
	y.ask("", "other", gangOf("train", 4, 0)[2:]...)
	if len(y.on) > 0 {
		t.Errorf("members of gangs of two runs are placed together: %v", y.on)
	}
	y.Forget("other")
	y.ask("", "g", gang[2])
	release(y.Queue, "g", "train[1]", 1)
	y.pass()
	if want := "waits for the requests of 2 more members"; y.why["train[2]"] != want {
		t.Errorf("after a request was dropped, train[2] waits because %q, want %q", y.why["train[2]"], want)
	}
	gang[1].Claim, gang[1].Refusals = 2, 2
	y.ask("", "g", gang[1], gang[3])
	if want := "waits for the requests of 1 more member"; y.why["train[0]"] != want || len(y.on) > 0 {
		t.Errorf("with a delayed request, %v are placed, and train[0] waits because %q, want %q", y.on, y.why["train[0]"], want)
	}
	if y.wait(time.Second); len(y.nodesOf("g", "train")) != 4 {
		t.Errorf("after the delay, %v are placed", y.on)
	}
}

// TestMembersOfDifferentPriorityAreOneGang checks that requests that differ in more than their tasks are still placed together.
func TestMembersOfDifferentPriorityAreOneGang(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"))
	y.ask("", "old", aTask("old", withCores(2)))
	gang := gangOf("train", 3, 0)
	gang[1].Priority = 5
	y.ask("", "g", gang...)
	if on := y.nodesOf("g", "train"); len(on) > 0 {
		t.Errorf("members are on %v", on)
	}
	if got := y.end("old", "old"); len(got) != 3 {
		t.Errorf("%v was placed, want all members", got)
	}
}

// TestGangOfRemoteTasks checks that members that run elsewhere take nothing of their nodes, and are placed as a whole.
func TestGangOfRemoteTasks(t *testing.T) {
	y := newYard(t, Options{}, aNode("a", func(n *v1.NodeSnapshot) { n.Executors = []string{v1.TypeK8sJob} }))
	y.ask("", "g", gangOf("train", names.MaxRemoteAttempts+1, 0, remote)...)
	if want := fmt.Sprintf("the nodes have room for %d of %d members at most: ", names.MaxRemoteAttempts, names.MaxRemoteAttempts+1); !strings.HasPrefix(y.why["train[0]"], want) {
		t.Errorf("it waits because %q, want %q", y.why["train[0]"], want)
	}
	y.ask("", "h", gangOf("tune", 6, 0, remote)...)
	if on := y.nodesOf("h", "tune"); len(on) != 6 {
		t.Errorf("the members are on %v", on)
	}
}

// TestGangIsNeverPrefetched checks that a node where a member would wait does not count.
func TestGangIsNeverPrefetched(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"))
	y.ask("", "short", aTask("short"))
	y.clock.add(10 * time.Millisecond)
	y.end("short", "short")
	y.ask("", "old", tasks("old", 3)...)
	y.ask("", "g", gangOf("train", 2, 0)...)
	if len(y.nodesOf("g", "train")) > 0 {
		t.Error("a member waits on the node")
	}
	y.ask("", "other", tasks("other", 2)...)
	if len(y.nodesOf("other", "other")) != 2 {
		t.Error("the node is not prefetched to: the test tests nothing")
	}
}

// TestGangThatDoesNotFitLeavesNoTrace checks that a decision against a gang changes nothing for others and causes no other pass.
func TestGangThatDoesNotFitLeavesNoTrace(t *testing.T) {
	y := newYard(t, Options{NoReservations: true},
		aNode("a", gpusOn(0, 0, 1), numaNodes(2, 2, 4096)), aNode("b", gpus(1)), aNode("c", gpus(1), onMachine("m")), aNode("d", gpus(1), onMachine("m")))
	y.SetTerms(map[string]Terms{"team": {Members: []string{"ada"}}})
	y.ask("ada", "old", aTask("old", withGPUs(1), withCores(0.5), withMemory(100)))
	y.ask("bob", "wide", aTask("wide", withGPUs(3)))
	y.clock.add(time.Minute)
	y.Request(Run{ID: "g", Owner: "ada"}, gangOf("train", 9, 0, withGPUs(0.5), withCores(0.5), withMemory(100)))
	y.Request(Run{ID: "g", Owner: "ada"}, gangOf("tune", 6, 0, withGPUs(1), withPriority(5)))
	before := y.trace()
	y.pass()
	if y.why["train[0]"] == "" || y.why["tune[5]"] == "" {
		t.Fatalf("the gangs do not wait: %v, %v", y.on, y.why)
	}
	if diff := cmp.Diff(before, y.trace()); diff != "" {
		t.Errorf("what the pass has changed (-before +after):\n%s", diff)
	}
	if y.fleet.log.hasNews() || len(y.Place()) > 0 {
		t.Error("another pass is due")
	}
	y.ask("bob", "next", tasks("next", 2, withGPUs(1))...)
	if len(y.nodesOf("next", "next")) != 2 {
		t.Errorf("the next tasks wait because %v", y.why)
	}
}

// TestWaitingGangSeesItsNodesAgain checks that a gang that some nodes have room for looks at them again when another node has changed.
func TestWaitingGangSeesItsNodesAgain(t *testing.T) {
	for _, sampleAbove := range []int{1, 100} {
		nodes := fourCores(20) // with few nodes, a class often looks at all of them again
		for _, name := range []string{"a", "b", "c", "d"} {
			nodes = append(nodes, aNode(name, labels("x")))
		}
		x := constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"x"} })
		y := newYard(t, Options{NoReservations: true, SampleAbove: sampleAbove}, nodes...)
		y.ask("", "old", tasks("old", 2, withCores(4), x)...)
		y.ask("", "g", gangOf("train", 4, 1, x)...)
		for i := range 3 {
			y.ask("", "more", aTask(fmt.Sprintf("more%d", i), withCores(0.5), x)) // another pass
		}
		y.end("old", "old[0]")
		if on := y.nodesOf("g", "train"); len(on) > 0 {
			t.Fatalf("members are on %v", on)
		}
		y.end("old", "old[1]")
		if on := y.nodesOf("g", "train"); !slices.Equal(on, []string{"a", "b", "c", "d"}) {
			t.Errorf("sampling above %d: the members are on %v: %v", sampleAbove, on, y.why)
		}
	}
}

// TestWaitingGangSeesNodesThatShareAMachineAgain checks that a node that had no room only because a member of the gang was on another
// node of its machine counts later.
func TestWaitingGangSeesNodesThatShareAMachineAgain(t *testing.T) {
	y := newYard(t, Options{NoReservations: true},
		aNode("a", slots(2), onMachine("m")), aNode("b", onMachine("m"), func(n *v1.NodeSnapshot) { n.Cpu.UsagePercent = 90 }), aNode("c"))
	y.ask("", "old", aTask("beside", withCores(3), pinned("a")), aTask("other", withCores(4), pinned("c")))
	y.ask("", "g", gangOf("train", 2, 1)...)
	y.ask("", "slot", aTask("slot", withCores(0), pinned("a")))
	if y.end("old", "other"); !slices.Equal(y.nodesOf("g", "train"), []string{"b", "c"}) {
		t.Errorf("the members are on %v: %s", y.nodesOf("g", "train"), y.why["train[0]"])
	}
}

// TestQuotaCountsTheWholeGang checks that a gang is not placed if its last member would exceed a quota.
func TestQuotaCountsTheWholeGang(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"), aNode("b"))
	y.SetTerms(map[string]Terms{"ada": {MaxCores: 3.5}})
	y.ask("ada", "g", gangOf("train", 4, 0)...)
	if want := "quota of ada: at most 3.5 cores, and 4 are asked"; len(y.on) > 0 || y.why["train[3]"] != want {
		t.Errorf("%v are placed, train[3] waits because %q, want %q", y.on, y.why["train[3]"], want)
	}
	y.SetTerms(map[string]Terms{"ada": {MaxCores: 4}})
	if y.pass(); len(y.nodesOf("g", "train")) != 4 {
		t.Errorf("%v are placed within the quota", y.on)
	}
	if held := y.Usage()["ada"].GetCores(); held != 4 {
		t.Errorf("ada holds %g cores", held)
	}
}

// TestGangReasons checks why gangs wait, and that those that the fleet can never hold are given up.
func TestGangReasons(t *testing.T) {
	busy := running("o", "t", 1)
	stale := func(n Node) Node { n.State = v1.NodeOffline; return n }
	cases := []struct {
		name       string
		nodes      []Node
		gang       []*historyv1.TaskRequest
		want       string
		impossible bool
	}{
		{name: "some room", nodes: live(aNode("a"), aNode("b"), aNode("c", slots(1), busy)), gang: gangOf("train", 3, 1),
			want: "room for 2 of 3 members, then 0 of 3 nodes fit: a, b have 1 member of this gang, the maximum; c has no free slot of 1"},
		{name: "no room", nodes: live(aNode("a", slots(1), busy), aNode("b", slots(1), busy)), gang: gangOf("train", 2, 0),
			want: "room for 0 of 2 members: 0 of 2 nodes fit: a, b have no free slot of 1"},
		{name: "cores", nodes: live(aNode("a", holding(-1, 3, 0)), aNode("b")), gang: gangOf("train", 3, 0, withCores(2)),
			want: "room for 2 of 3 members, then 0 of 2 nodes have 2 cores free: a 1, b 0"},
		{name: "too few for perNode", nodes: live(aNode("a"), aNode("b"), aNode("c", slots(1), labels("x"))), gang: gangOf("train", 4, 1),
			want: "the nodes have room for 3 of 4 members at most: perNode 1, 3 nodes match; add nodes or raise perNode", impossible: true},
		{name: "one too small", nodes: live(aNode("a"), aNode("b", func(n *v1.NodeSnapshot) { n.Cpu.Cores = 1 })), gang: gangOf("train", 3, 0, withCores(2)),
			want: "the nodes have room for 2 of 3 members at most: 1 node matches; add nodes", impossible: true},
		{name: "slots", nodes: live(aNode("a", slots(2)), aNode("b", slots(2), busy)), gang: gangOf("train", 5, 0, withCores(0.1)),
			want: "the nodes have room for 4 of 5 members at most: 2 nodes match; add nodes", impossible: true},
		{name: "GPU parts", nodes: live(aNode("a", gpus(2), slots(9))), gang: gangOf("train", 5, 0, withCores(0.1), withGPUs(0.4)),
			want: "the nodes have room for 4 of 5 members at most: 1 node matches; add nodes", impossible: true},
		{name: "one machine", nodes: live(aNode("a", onMachine("m")), aNode("b", onMachine("m"))), gang: gangOf("train", 5, 0),
			want: "the nodes have room for 4 of 5 members at most: 2 nodes match; add nodes", impossible: true},
		{name: "perNode is no limit", nodes: live(aNode("a", onMachine("m")), aNode("b", onMachine("m"))), gang: gangOf("train", 2, 1, withCores(3)),
			want: "the nodes have room for 1 of 2 members at most: 2 nodes match; add nodes", impossible: true},
		{name: "one is away", nodes: append(live(aNode("a")), stale(Node{Snapshot: aNode("b")})), gang: gangOf("train", 2, 1),
			want:       "the nodes have room for 1 of 2 members at most: perNode 1, 1 node matches; wait until b is back, or add nodes or raise perNode",
			impossible: true},
		{name: "no node", nodes: live(aNode("a")), gang: gangOf("train", 2, 0, withCores(9)),
			want: "no node could ever fit: a has 4 cores of 9 asked", impossible: true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			y := newYard(t, Options{NoReservations: true})
			y.SetNodes(tc.nodes)
			before := y.trace()
			if got := y.Explain("g", tc.gang[0]); got.GetReason() != tc.want {
				t.Errorf("before it is in the queue: %q, want %q", got.GetReason(), tc.want)
			} else if i := slices.IndexFunc(got.GetNodes(), (*v1.NodeVerdict).GetFeasible); tc.impossible && i >= 0 {
				t.Errorf("%s is feasible", got.GetNodes()[i].GetName())
			}
			if diff := cmp.Diff(before, y.trace()); diff != "" {
				t.Errorf("the explanation has changed something:\n%s", diff)
			}
			for _, r := range tc.gang {
				r.PlacementTimeout = durationpb.New(time.Minute)
			}
			y.ask("", "g", tc.gang...)
			for _, r := range tc.gang {
				if got := y.why[r.Task]; got != tc.want {
					t.Errorf("%s waits because %q, want %q", r.Task, got, tc.want)
				}
			}
			y.wait(2 * time.Minute)
			for _, r := range tc.gang {
				if isGivenUp := y.demand.requestOf("g", r.Task).state == givenUp; isGivenUp != tc.impossible {
					t.Errorf("%s was given up: %v", r.Task, isGivenUp)
				}
			}
		})
	}
	y := newYard(t, Options{}, aNode("a"), aNode("b"), aNode("c"))
	if got, want := y.Explain("g", gangOf("train", 8, 0)[0]).GetReason(), "3 of 3 nodes fit: the task is placed next, after more urgent ones"; got != want {
		t.Errorf("with room for all: %q, want %q", got, want)
	}
}

// TestExplainNamesMostMembersOfEachNode checks the verdicts on the nodes for a gang that is larger than the fleet.
func TestExplainNamesMostMembersOfEachNode(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"), aNode("b", slots(1)), aNode("c", func(n *v1.NodeSnapshot) { n.Cpu.Cores = 1 }))
	want := map[string]string{
		"a": "has room for 2 of 4 members at most", "b": "has room for 1 of 4 members at most", "c": "has 1 core of 2 asked",
	}
	for _, v := range y.Explain("g", gangOf("train", 4, 0, withCores(2))[0]).GetNodes() {
		if v.GetFeasible() || v.GetReasons()[0] != want[v.GetName()] {
			t.Errorf("%s: feasible %v, %q, want %q", v.GetName(), v.GetFeasible(), v.GetReasons(), want[v.GetName()])
		}
	}
}

// TestGangBecomesPossibleWithAnotherNode checks that the time-out of a gang ends when a node joins.
func TestGangBecomesPossibleWithAnotherNode(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"))
	y.ask("", "g", gangOf("train", 2, 1, func(r *historyv1.TaskRequest) { r.PlacementTimeout = durationpb.New(time.Minute) })...)
	y.wait(30 * time.Second)
	y.SetNodes(live(aNode("a"), aNode("b", slots(1), running("o", "t", 1))))
	y.pass()
	y.wait(5 * time.Minute)
	if want := "room for 1 of 2 members, then 0 of 2 nodes fit: "; !strings.Contains(y.why["train[0]"], want) {
		t.Errorf("it waits because %q, want %q", y.why["train[0]"], want)
	}
	y.SetNodes(live(aNode("a"), aNode("b")))
	if y.pass(); !slices.Equal(y.nodesOf("g", "train"), []string{"a", "b"}) {
		t.Errorf("placed %v: %v", y.on, y.why)
	}
}

// TestExplainOfTheTaskOfAGang checks that the task says what keeps its members waiting, such as a quota.
func TestExplainOfTheTaskOfAGang(t *testing.T) {
	y := newYard(t, Options{NoReservations: true}, aNode("a"))
	y.SetTerms(map[string]Terms{"ann": {MaxTasks: 1}})
	gang := gangOf("train", 2, 0)
	y.ask("ann", "g", gang...)
	task := aTask("train", func(r *historyv1.TaskRequest) { r.Gang = gang[0].Gang })
	if got := y.Explain("g", task); !got.GetHeld() || !strings.Contains(got.GetReason(), "quota of ann") {
		t.Errorf("explained: %v", got)
	}
}

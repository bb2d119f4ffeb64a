package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// TestReservationsNeverBlockForever checks in random histories, with reservations and owners who take turns, that no
// node is ever given more than it has, that a reservation is only held for a waiting request on a node that accepts
// tasks, and that everything is placed in the end when attempts keep ending.
func TestReservationsNeverBlockForever(t *testing.T) {
	reserved := 0
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		var nodes []Node
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			n := aNode(fmt.Sprintf("n%d", i), slots(rapid.Int32Range(1, 6).Draw(t, "slots")), gpus(rapid.IntRange(0, 2).Draw(t, "gpus")))
			nodes = append(nodes, live(n)...)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		q := New(Options{Now: c.now, Rand: rand.New(rand.NewPCG(seed, 1)), SampleAbove: rapid.IntRange(1, 6).Draw(t, "above")})
		q.SetNodes(nodes)
		on, next := map[claimKey]string{}, 0
		asked := map[claimKey]*historyv1.TaskRequest{}
		pass := func() {
			for _, runID := range q.Place() {
				placed, _ := q.Take(runID)
				for _, a := range placed {
					on[claimKey{runID, a.Task, a.Claim}] = a.Node
				}
			}
			checkCapacity(t, nodes, on, asked)
			for _, res := range q.scheduler.reservations.held {
				reserved++
				if res.request.state != waiting || !res.node.now.active || res.node.machine.reservation != res || !res.request.hasReserved(res) {
					t.Fatalf("a reservation on %s for %s, which is in state %d", res.node.name, res.request.task, res.request.state)
				}
			}
		}
		ask := func() {
			next++
			r := aTask(fmt.Sprintf("t%d", next), withCores(float64(rapid.IntRange(0, 8).Draw(t, "cores"))/2),
				withPriority(rapid.Int32Range(0, 2).Draw(t, "priority")), queuedAt(c.now()))
			r.Resources.Gpus = rapid.SampledFrom([]float64{0, 0, 0, 0.5, 1, 2}).Draw(t, "GPUs")
			r.Constraints.MaxParallelPerNode = rapid.SampledFrom([]int32{0, 0, 0, 1}).Draw(t, "perNode")
			if rapid.Bool().Draw(t, "limited") {
				withLimit(time.Duration(rapid.IntRange(1, 100).Draw(t, "limit")) * time.Second)(r)
			}
			run := rapid.SampledFrom([]string{"a1", "a2", "b1", "c1"}).Draw(t, "run")
			asked[claimKey{run, r.Task, 1}] = r
			q.Request(Run{ID: run, Owner: run[:1], Workflow: "w"}, []*historyv1.TaskRequest{r})
		}
		end := func(k int) {
			keys := slices.SortedFunc(maps.Keys(on), func(a, b claimKey) int { return strings.Compare(a.run+a.task, b.run+b.task) })
			key := keys[k%len(keys)]
			delete(on, key)
			delete(asked, key)
			release(q, key.run, key.task, 1)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				c.add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "wait")) * time.Millisecond)
			case 1, 2:
				if len(on) > 0 {
					end(rapid.IntRange(0, 100).Draw(t, "which"))
				}
			default:
				ask()
			}
			pass()
		}
		// What no node could ever run waits; the rest must be placed as attempts end, the shortest wait first.
		for range 10 * (len(asked) + 1) {
			if len(on) > 0 {
				end(0)
			}
			c.add(time.Second)
			pass()
		}
		for key := range asked {
			r := q.demand.requestOf(key.run, key.task)
			if r != nil && r.state == waiting && r.class.prospects.isPossible() {
				t.Fatalf("%s waits for ever: %s", key.task, r.waitsFor())
			}
		}
	})
	if reserved == 0 {
		t.Error("nothing was ever reserved: the test tests nothing")
	}
}

// checkCapacity fails the test if attempts hold more of a node than it has. A node that is prefetched to may hold twice its
// cores and slots.
func checkCapacity(t *rapid.T, nodes []Node, on map[claimKey]string, asked map[claimKey]*historyv1.TaskRequest) {
	for _, n := range nodes {
		var cores float64
		var tasks int32
		var gpus float64
		for key, name := range on {
			if name == n.Snapshot.GetName() {
				cores += asked[key].Resources.GetCores()
				gpus += asked[key].Resources.GetGpus()
				tasks++
			}
		}
		s := n.Snapshot
		if cores > prefetchFactor*float64(s.GetCpu().GetCores()) || tasks > prefetchFactor*s.GetMaxParallel() || gpus > float64(len(s.GetGpus())) {
			t.Fatalf("%s holds %g cores, %d tasks and %g GPUs", s.GetName(), cores, tasks, gpus)
		}
	}
}

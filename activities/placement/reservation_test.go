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

	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// TestReservationsNeverBlockForever checks in random histories, with reservations and owners who take turns, that no
// node is ever given more than it has, that a reservation is only held for a waiting request on a node that accepts
// tasks, and that everything is placed in the end when attempts keep ending.
func TestReservationsNeverBlockForever(t *testing.T) {
	testneeds.Checks(t, 2000)
	reserved, parts := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		var nodes []Node
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			n := aNode(fmt.Sprintf("n%d", i), slots(rapid.Int32Range(1, 6).Draw(t, "slots")), gpus(rapid.IntRange(0, 2).Draw(t, "gpus")))
			for _, g := range n.Gpus {
				g.MemoryMb = rapid.SampledFrom([]float64{0, 4000, 8000}).Draw(t, "GPU memory")
			}
			nodes = append(nodes, live(n)...)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		q := New(Options{Now: c.now, Rand: rand.New(rand.NewPCG(seed, 1)), SampleAbove: rapid.IntRange(1, 6).Draw(t, "above")})
		q.SetNodes(nodes)
		on, given, next := map[claimKey]string{}, map[claimKey]*historyv1.Assignment{}, 0
		asked := map[claimKey]*historyv1.TaskRequest{}
		pass := func() {
			for _, runID := range q.Place() {
				placed, _ := q.Take(runID)
				for _, a := range placed {
					on[claimKey{runID, a.Task, a.Claim}] = a.Node
					given[claimKey{runID, a.Task, a.Claim}] = a
				}
			}
			checkCapacity(t, nodes, on, asked)
			parts += checkGrants(t, nodes, given, asked)
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
			r.Resources.Gpus = rapid.SampledFrom([]float64{0, 0, 0, 0.5, 0.333, 1, 2}).Draw(t, "GPUs")
			if r.Resources.Gpus < 1 {
				r.Resources.GpuMemoryMb = rapid.SampledFrom([]int32{0, 0, 0, 2500}).Draw(t, "memory of a GPU")
			}
			r.Resources.MemoryMb = rapid.SampledFrom([]int32{0, 0, 3000}).Draw(t, "memory")
			r.Constraints.MaxParallelPerNode = rapid.SampledFrom([]int32{0, 0, 0, 1, 2}).Draw(t, "perNode")
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
			delete(given, key)
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
	if reserved == 0 || parts == 0 {
		t.Errorf("%d reservations, %d attempts with a part of a GPU: the test tests nothing", reserved, parts)
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

// checkGrants fails the test if attempts hold more of the memory of a node than it has, if they hold more than the whole of a GPU or
// of its memory, or if a node has more attempts of a run than their requests allow. It returns how many hold a part of a GPU.
func checkGrants(t *rapid.T, nodes []Node, given map[claimKey]*historyv1.Assignment, asked map[claimKey]*historyv1.TaskRequest) (parts int) {
	for _, n := range nodes {
		memory, uses := int32(0), map[int32]*v1.GPUUse{}
		for key, a := range given {
			if a.Node != n.Snapshot.Name {
				continue
			}
			memory += asked[key].Resources.MemoryMb
			part := policy.GPUsOf(asked[key].Resources).Part
			for _, index := range a.Gpus {
				if uses[index] == nil {
					uses[index] = &v1.GPUUse{}
				}
				uses[index].Add(part)
			}
			if part != nil {
				parts++
			}
			if most := asked[key].Constraints.MaxParallelPerNode; most > 0 {
				beside := int32(0) // those whose own limits are no larger: the last of them has counted all the others
				for other, b := range given {
					if limit := asked[other].Constraints.MaxParallelPerNode; b.Node == a.Node && other.run == key.run && limit > 0 && limit <= most {
						beside++
					}
				}
				if beside > most {
					t.Fatalf("%s has %d attempts of run %s, want at most %d", a.Node, beside, key.run, most)
				}
			}
		}
		if float64(memory) > n.Snapshot.Memory.TotalMb {
			t.Fatalf("attempts hold %d MiB of %s", memory, n.Snapshot.Name)
		}
		for index, use := range uses {
			size := n.Snapshot.Gpus[index].MemoryMb
			if use.Whole > 1 || use.Whole == 1 && (use.Thousandths > 0 || use.MemoryMB > 0) || use.Thousandths > 1000 || float64(use.MemoryMB) > size {
				t.Fatalf("GPU %d of %s with %g MiB has %+v", index, n.Snapshot.Name, size, use)
			}
		}
	}
	return parts
}

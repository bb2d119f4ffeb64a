package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// drawNode draws a small machine without attempts of ours.
func (m *model) drawNode(t *rapid.T, name string) Node {
	m.beats++
	n := aNode(name, slots(rapid.Int32Range(1, 4).Draw(t, "slots")), func(n *v1.NodeSnapshot) { n.Sequence = m.beats })
	n.Cpu.Cores = 3
	n.Cpu.UsagePercent = float64(rapid.IntRange(0, 4).Draw(t, "usage") * 20)
	n.Memory.AvailableMb = float64(rapid.IntRange(0, 8).Draw(t, "available") * 1024)
	if rapid.Bool().Draw(t, "labelled") {
		n.Labels = []string{"x"}
	}
	gpusOn(rapid.SampledFrom([][]int32{nil, {-1}, {0, 1}, {0, 0, 1}}).Draw(t, "gpus")...)(n)
	for i, g := range n.Gpus {
		g.Name, g.MemoryMb = []string{"x", "x", "y"}[i], []float64{8000, 0, 4000}[i]
	}
	if rapid.Bool().Draw(t, "tells NUMA") {
		numaNodes(2, 2, 4096)(n)
	}
	n.Gaming = rapid.IntRange(0, 7).Draw(t, "gaming") == 0
	n.Draining = rapid.IntRange(0, 9).Draw(t, "draining") == 0
	n.Machine = map[string]string{"a": "m1", "b": "m1", "c": "m2", "d": ""}[name]
	state := rapid.SampledFrom([]string{v1.NodeActive, v1.NodeActive, v1.NodeActive, v1.NodeActive, v1.NodeActive,
		v1.NodeStale, v1.NodeDraining, v1.NodeOffline}).Draw(t, "state")
	return Node{Snapshot: n, State: state}
}

// snapshots draws a new state of the fleet. Assigned, foreign and recently released attempts may or
// may not show up as running.
func (m *model) snapshots(t *rapid.T) []Node {
	m.nodes = map[string]Node{}
	clear(m.refused)
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		name := string(rune('a' + i))
		if rapid.IntRange(0, 5).Draw(t, "absent") == 0 {
			continue
		}
		told := m.drawNode(t, name)
		n := told.Snapshot
		m.nodes[name], m.machine[name] = told, n.Machine
		m.foreign[name] = nil
		for k := range rapid.IntRange(0, 1).Draw(t, "foreign") {
			a := &v1.RunningAttempt{RunId: "r0", Task: fmt.Sprintf("f%s%d", name, k), Claim: 1, Cores: 0.5}
			switch rapid.IntRange(0, 2).Draw(t, "holds") {
			case 0:
				a.Gpus = []int32{rapid.Int32Range(0, 2).Draw(t, "its GPU")}
				a.GpuPart = rapid.SampledFrom([]*v1.GpuPart{nil, {Thousandths: 500}, {Thousandths: 1, MemoryMb: 3000}}).Draw(t, "its part")
			case 1:
				numa := rapid.Int32Range(0, 1).Draw(t, "its NUMA node")
				a.NumaNode, a.MemoryMb = &numa, 1024
			}
			n.Running = append(n.Running, a)
			if told.State != v1.NodeOffline {
				m.foreign[name] = append(m.foreign[name], a)
			}
		}
		for _, c := range m.on(name) {
			// What an offline node reported does not count.
			shown := rapid.Bool().Draw(t, "seen")
			if c.seen = shown && told.State != v1.NodeOffline; shown {
				n.Running = append(n.Running, c.shown())
			}
		}
		for _, ref := range m.stale[name] {
			if rapid.Bool().Draw(t, "stale") {
				n.Running = append(n.Running, ref)
			}
		}
	}
	var out []Node
	for name := range m.machine {
		if told, present := m.nodes[name]; present {
			out = append(out, told)
			continue
		}
		m.foreign[name] = nil
		for _, c := range m.on(name) {
			c.seen = false
		}
		m.forgetGone(name)
	}
	return out
}

func drawRequest(t *rapid.T, c *clock) *historyv1.TaskRequest {
	r := aTask(fmt.Sprintf("t%d", rapid.IntRange(0, 7).Draw(t, "task")))
	r.Claim = rapid.Int32Range(1, 4).Draw(t, "claim")
	r.Priority = rapid.Int32Range(0, 2).Draw(t, "priority")
	r.Refusals = rapid.SampledFrom([]int32{0, 0, 0, 0, 0, 1, 2, 3}).Draw(t, "refusals")
	queuedAt(c.now().Add(-time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second))(r)
	if k := rapid.IntRange(0, 6).Draw(t, "cores"); k > 0 {
		withCores(float64(k-1) / 2)(r)
	}
	r.Resources.MemoryMb = rapid.SampledFrom([]int32{0, 0, 512, 3000}).Draw(t, "memory")
	r.Resources.Gpus = rapid.SampledFrom([]float64{0, 0, 0, 0, 0, 1, 2, 0.5, 0.5, 0.3, 0.7}).Draw(t, "gpus")
	r.Resources.GpuMemoryMb = rapid.SampledFrom([]int32{0, 0, 0, 0, 1000, 4000}).Draw(t, "GPU memory")
	r.Resources.GpuModel = rapid.SampledFrom([]string{"", "", "", "x"}).Draw(t, "model")
	if k := rapid.Int32Range(-8, 2).Draw(t, "NUMA node"); k >= 0 {
		onNUMA(k)(r)
	}
	r.Constraints.NodeLabels = rapid.SampledFrom([][]string{nil, nil, {"x"}, {"y"}}).Draw(t, "labels")
	r.Constraints.MaxParallelPerNode = rapid.SampledFrom([]int32{0, 0, 0, 1, 2}).Draw(t, "perNode")
	targets := []string{"", "", "", "", "", "", "a", "c:1", "b::0,2", "a:0::1"}
	if (&modelClaim{req: r}).isPart() {
		targets = targets[:8] // a definition may not ask for a part and for whole GPUs
	}
	r.Constraints.TargetNode = rapid.SampledFrom(targets).Draw(t, "target")
	r.AvoidNodes = rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a", "b"}}).Draw(t, "avoid")
	return r
}

func drawOutcome(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "done", "refused", "system", "system", "moved"}).Draw(t, "outcome")
}

// TestQueueAgainstModel checks that in every history the queue places exactly what the naive model
// places, on the same nodes. So the queue never exceeds a capacity that the model counts, respects
// priority and age, and leaves no request waiting that fits. In addition, every waiting request has
// a reason, and nothing is held after everything has been released.
func TestQueueAgainstModel(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		m := newModel(c)
		q := New(Options{Now: c.now, Settle: time.Hour, ReasonInterval: time.Minute, FIFO: true, NoReservations: true})
		told, next := map[string]bool{}, 0
		q.SetNodes(m.snapshots(t))
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			runID := rapid.SampledFrom([]string{"r0", "r1"}).Draw(t, "run")
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0:
				q.SetNodes(m.snapshots(t))
			case 1:
				// Most claims that end had been placed. Several failures in a row make a bench more
				// likely.
				outcome := drawOutcome(t)
				node := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "ends on")
				for range rapid.IntRange(1, 4).Draw(t, "times") {
					for _, claim := range m.sortedOn(node) {
						m.release(claim.run, claim.req.Task, claim.req.Claim, outcome)
						q.Release(claim.run, []*historyv1.ClaimRef{{Task: claim.req.Task, Claim: claim.req.Claim, Outcome: outcome}})
					}
					c.add(10 * time.Millisecond)
					next++
					req := aTask(fmt.Sprintf("next%d", next), withCores(0), queuedAt(c.now()))
					m.request(runID, req)
					q.Request(Run{ID: runID}, []*historyv1.TaskRequest{req})
					seen["placed"] += checkPass(t, q, m, told)
				}
			case 2, 3:
				task, claim := fmt.Sprintf("t%d", rapid.IntRange(0, 7).Draw(t, "task")), rapid.Int32Range(1, 4).Draw(t, "claim")
				outcome := drawOutcome(t)
				if q.HasRun(runID) {
					m.release(runID, task, claim, outcome)
				}
				q.Release(runID, []*historyv1.ClaimRef{{Task: task, Claim: claim, Outcome: outcome}})
			case 4:
				c.add(rapid.SampledFrom([]time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second, 40 * time.Second}).Draw(t, "wait"))
			default:
				for range rapid.IntRange(1, 6).Draw(t, "requests") {
					req := drawRequest(t, c)
					m.request(runID, req)
					q.Request(Run{ID: runID}, []*historyv1.TaskRequest{req})
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "pass") == 0 {
				continue
			}
			seen["placed"] += checkPass(t, q, m, told)
			seen["benched"] += len(q.Benched())
			for _, n := range q.fleet.byName {
				seen["refused"] += len(n.refused)
			}
			for _, claim := range m.claims {
				if claim.node != "" && claim.isPart() {
					seen["parts"]++
				}
				if claim.node != "" && claim.grant.numa >= 0 && len(claim.grant.gpus) > 0 {
					seen["bound with GPUs"]++
				}
			}
		}
		for _, id := range []string{"r0", "r1"} {
			q.Forget(id)
		}
		checkEmpty(t, q)
	})
	if seen["placed"] == 0 {
		t.Error("nothing was ever placed anew: the test tests nothing")
	}
	t.Logf("in all %v", seen)
}

// checkPass compares one pass of the queue and the model, and returns the number of placed
// requests.
func checkPass(t *rapid.T, q *Queue, m *model, told map[string]bool) int {
	q.Place()
	want, err := m.place(func(id string) grant {
		if r := q.demand.requestOf(id[:2], id[3:]); r != nil && r.state == assigned {
			return r.place.grant
		}
		return grant{numa: noNUMA}
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, runID := range []string{"r0", "r1"} {
		placed, stuck := q.Take(runID)
		for _, a := range placed {
			id := runID + "/" + a.Task
			c := m.claims[id]
			if c == nil || c.req.Claim != a.Claim || c.node != a.Node {
				t.Fatalf("%s claim %d was told to be on %q, the model has %+v", id, a.Claim, a.Node, c)
			}
			// A repeated request reports its assignment once more.
			if _, fresh := want[id]; fresh || !told[fmt.Sprint(id, a.Claim)] {
				got[id] = a.Node
			}
			told[fmt.Sprint(id, a.Claim)] = true
		}
		for _, w := range stuck {
			if w.Reason == "" {
				t.Fatalf("%s/%s waits without a reason", runID, w.Task)
			}
			told["why "+fmt.Sprint(runID+"/"+w.Task, w.Claim)] = true
		}
		if a, w := q.Take(runID); len(a)+len(w) > 0 {
			t.Fatalf("taken twice: %v %v", a, w)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("placed (-model +queue):\n%s", diff)
	}
	for id, c := range m.claims {
		if c.node == "" && !told["why "+fmt.Sprint(id, c.req.Claim)] {
			t.Fatalf("%s waits and its reason was never told", id)
		}
	}
	if again := q.Place(); len(again) > 0 {
		t.Fatalf("a pass in which nothing has changed has news for %v", again)
	}
	return len(got)
}

func checkEmpty(t *rapid.T, q *Queue) {
	for _, n := range q.fleet.byName {
		if len(n.claimed) > 0 || n.byAge.Len() > 0 || len(n.priorities) > 0 {
			t.Fatalf("node %s still holds %d", n.name, len(n.claimed))
		}
	}
	for _, m := range q.fleet.ledger.machines {
		if m.holds != (amount{}) || m.unseenMB != 0 {
			t.Fatalf("the machine %s still holds %+v and %d MiB unseen", m.id, m.holds, m.unseenMB)
		}
		var foreign []grant
		for _, n := range m.nodes {
			for _, c := range n.foreign {
				foreign = append(foreign, c.grant)
			}
		}
		for _, g := range foreign {
			m.discharge(&m.foreign, g)
		}
		for index, held := range m.gpus {
			if held != (v1.GPUUse{}) {
				t.Fatalf("GPU %d of machine %s still has %+v", index, m.id, held)
			}
		}
		for index, bound := range m.numa {
			if bound != (amount{}) {
				t.Fatalf("NUMA node %d of machine %s still holds %+v", index, m.id, bound)
			}
		}
	}
	if len(q.demand.classes.active)+len(q.demand.delayed)+len(q.demand.timeouts.classes)+len(q.demand.runs)+len(q.demand.reports) > 0 {
		t.Fatalf("%d shapes, %d delayed, %d time-outs, %d runs and %d with news are left",
			len(q.demand.classes.active), len(q.demand.delayed), len(q.demand.timeouts.classes), len(q.demand.runs), len(q.demand.reports))
	}
}

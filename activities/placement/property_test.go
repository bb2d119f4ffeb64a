package placement

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
)

// model is a naive placement queue: flat lists, everything worked out afresh
// each time, every node tried for every request.
type model struct {
	clock   *clock
	nodes   map[string]*v1.NodeSnapshot // present ones
	machine map[string]string           // of every node that there ever was
	foreign map[string][]modelForeign   // by node
	claims  map[string]*modelClaim      // by run and task, the newest
	gone    map[string]int32            // newest released claim by run and task
	stale   map[string][]*v1.RunningAttempt
	mean    map[string]time.Duration
	seq     int
}

type modelForeign struct {
	ref   *v1.RunningAttempt
	cores float64
}

type modelClaim struct {
	run  string
	req  *v1.TaskRequest
	seq  int
	node string // empty: it waits
	at   time.Time
	seen bool
}

func (c *modelClaim) cores() float64 {
	if c.req.Resources.Cores == nil {
		return 1
	}
	return *c.req.Resources.Cores
}

func (m *model) request(runID string, req *v1.TaskRequest) {
	id := runID + "/" + req.Task
	if last, ok := m.gone[id]; ok && req.Claim <= last {
		return
	}
	if old := m.claims[id]; old != nil {
		if old.req.Claim >= req.Claim {
			return
		}
		m.end(id)
	}
	m.seq++
	m.claims[id] = &modelClaim{run: runID, req: req, seq: m.seq}
}

func (m *model) release(runID, task string, claim int32) {
	id := runID + "/" + task
	if last, ok := m.gone[id]; !ok || claim > last {
		m.gone[id] = claim
	}
	if c := m.claims[id]; c != nil && c.req.Claim <= claim {
		m.end(id)
	}
}

func (m *model) end(id string) {
	c := m.claims[id]
	delete(m.claims, id)
	if c.node == "" {
		return
	}
	took := m.clock.now().Sub(c.at)
	if mean, ok := m.mean[c.node]; ok {
		took = mean + time.Duration(0.2*float64(took-mean))
	}
	m.mean[c.node] = took
	m.stale[c.node] = append(m.stale[c.node], &v1.RunningAttempt{RunId: c.run, Task: c.req.Task, Claim: c.req.Claim})
	m.forgetGone(c.node)
}

func (m *model) forgetGone(node string) {
	if m.nodes[node] == nil && len(m.on(node)) == 0 {
		delete(m.mean, node)
		delete(m.stale, node)
	}
}

func (m *model) on(node string) []*modelClaim {
	var out []*modelClaim
	for _, c := range m.claims {
		if c.node == node {
			out = append(out, c)
		}
	}
	return out
}

func (m *model) stretch(node string) int {
	mean, ok := m.mean[node]
	if !ok || mean >= time.Second {
		return 1
	}
	for _, c := range m.on(node) {
		if m.clock.now().Sub(c.at) >= time.Second {
			return 1
		}
	}
	return 2
}

// room tells whether the claim fits the node, and whether only ahead of time.
func (m *model) room(c *modelClaim, name string) (fits, ahead bool) {
	n, con, res := m.nodes[name], c.req.Constraints, c.req.Resources
	for _, l := range con.NodeLabels {
		if !slices.Contains(n.Labels, l) {
			return false, false
		}
	}
	if con.TargetNode != "" && con.TargetNode != name {
		return false, false
	}
	here := m.on(name)
	ofRun := 0
	for _, o := range here {
		if o.run == c.run {
			ofRun++
		}
	}
	for _, f := range m.foreign[name] {
		if f.ref.RunId == c.run {
			ofRun++
		}
	}
	if con.MaxParallelPerNode > 0 && ofRun >= int(con.MaxParallelPerNode) {
		return false, false
	}
	var cores float64
	var memory, unseen, gpus int32
	for _, o := range m.claims {
		if o.node == "" || m.machine[o.node] != m.machine[name] {
			continue
		}
		cores += o.cores()
		memory += o.req.Resources.MemoryMb
		gpus += o.req.Resources.Gpus
		if !o.seen {
			unseen += o.req.Resources.MemoryMb
		}
	}
	for other := range m.nodes {
		for _, f := range m.foreign[other] {
			if m.machine[other] == m.machine[name] {
				cores += f.cores
			}
		}
	}
	mem := int32(n.Memory.TotalMb)
	if res.MemoryMb > 0 && (memory+res.MemoryMb > mem || unseen+res.MemoryMb > int32(n.Memory.AvailableMb)) {
		return false, false
	}
	if res.Gpus > 0 && int(gpus+res.Gpus) > len(n.Gpus) {
		return false, false
	}
	total := float64(n.Cpu.Cores)
	if c.cores() > total {
		return false, false
	}
	fitsIn := func(k int) bool {
		return len(here)+len(m.foreign[name]) < k*int(n.MaxParallel) &&
			(c.cores() == 0 || cores+c.cores() <= float64(k)*total)
	}
	return fitsIn(m.stretch(name)), !fitsIn(1)
}

// could tells whether the claim could ever use the node.
func (m *model) could(c *modelClaim, name string) bool {
	n, con := m.nodes[name], c.req.Constraints
	for _, l := range con.NodeLabels {
		if !slices.Contains(n.Labels, l) {
			return false
		}
	}
	return (con.TargetNode == "" || con.TargetNode == name) && c.cores() <= float64(n.Cpu.Cores)
}

// mayWait tells whether the claim may be queued on the node ahead of time.
func (m *model) mayWait(c *modelClaim, name string) bool {
	for _, o := range m.claims {
		if o.node == name && o.req.Priority != c.req.Priority ||
			o.node == "" && o.req.Priority > c.req.Priority && m.could(o, name) {
			return false
		}
	}
	return true
}

// place gives each waiting claim, in order, to the best node there is.
func (m *model) place() map[string]string {
	var queue []string
	for id, c := range m.claims {
		if c.node == "" {
			queue = append(queue, id)
		}
	}
	slices.SortFunc(queue, func(x, y string) int {
		a, b := m.claims[x], m.claims[y]
		if a.req.Priority != b.req.Priority {
			return int(b.req.Priority - a.req.Priority)
		}
		if d := a.req.QueuedAt.AsTime().Compare(b.req.QueuedAt.AsTime()); d != 0 {
			return d
		}
		return a.seq - b.seq
	})
	out := map[string]string{}
	for _, id := range queue {
		c := m.claims[id]
		best, bestRank := "", [4]float64{}
		for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
			fits, ahead := m.room(c, name)
			if !fits || ahead && !m.mayWait(c, name) {
				continue
			}
			// The same sum as the queue's, so that equal scores are equal to the last bit.
			tasks := float64(len(m.on(name)) + len(m.foreign[name]))
			score := Sum(figures(m.nodes[name], c.req.Resources.Gpus > 0, DefaultWeights())) - DefaultWeights().Task*tasks
			rank := [4]float64{0, 0, score, -tasks}
			if !slices.Contains(c.req.AvoidNodes, name) {
				rank[0] = 1
			}
			if !ahead {
				rank[1] = 1
			}
			if best == "" || slices.Compare(rank[:], bestRank[:]) > 0 {
				best, bestRank = name, rank
			}
		}
		if best != "" {
			c.node, c.at, c.seen = best, m.clock.now(), false
			out[id] = best
		}
	}
	return out
}

// snapshots draws a new state of the fleet, in which what is assigned, foreign or just
// over shows up as running or does not.
func (m *model) snapshots(t *rapid.T) []*v1.NodeSnapshot {
	m.nodes = map[string]*v1.NodeSnapshot{}
	reserved := map[string]float64{}
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		name := string(rune('a' + i))
		if rapid.IntRange(0, 5).Draw(t, "absent") == 0 {
			continue
		}
		n := aNode(name, slots(rapid.Int32Range(1, 4).Draw(t, "slots")), gpus(1))
		n.Cpu.Cores = 3
		n.Cpu.UsagePercent = float64(rapid.IntRange(0, 4).Draw(t, "usage") * 20)
		n.Memory.AvailableMb = float64(rapid.IntRange(0, 8).Draw(t, "available") * 1024)
		if rapid.Bool().Draw(t, "labelled") {
			n.Labels = []string{"x"}
		}
		n.Machine = map[string]string{"a": "m1", "b": "m1", "c": "m2", "d": ""}[name]
		m.machine[name] = n.Machine
		m.nodes[name] = n
		m.foreign[name] = nil
		for k := range rapid.IntRange(0, 1).Draw(t, "foreign") {
			f := modelForeign{cores: 0.5, ref: &v1.RunningAttempt{RunId: "r0", Task: fmt.Sprintf("f%s%d", name, k), Claim: 1}}
			m.foreign[name] = append(m.foreign[name], f)
			n.Running = append(n.Running, f.ref)
			reserved[n.Machine] += f.cores
		}
		for _, c := range m.on(name) {
			if c.seen = rapid.Bool().Draw(t, "seen"); c.seen {
				n.Running = append(n.Running, &v1.RunningAttempt{RunId: c.run, Task: c.req.Task, Claim: c.req.Claim})
				reserved[n.Machine] += c.cores()
			}
		}
		for _, ref := range m.stale[name] {
			// What is over may still be shown; the cores that it held are then shown too, but
			// the model does not know them: they are left out, which counts as less foreign use.
			if len(m.foreign[name]) == 0 && m.machine[name] == "" && rapid.Bool().Draw(t, "stale") {
				n.Running = append(n.Running, ref)
			}
		}
	}
	for name := range m.machine {
		if m.nodes[name] == nil {
			m.foreign[name] = nil
			for _, c := range m.on(name) {
				c.seen = false
			}
			m.forgetGone(name)
		}
	}
	var out []*v1.NodeSnapshot
	for _, n := range m.nodes {
		n.ReservedCores = reserved[n.Machine]
		out = append(out, n)
	}
	return out
}

func drawRequest(t *rapid.T, c *clock) *v1.TaskRequest {
	r := aTask(fmt.Sprintf("t%d", rapid.IntRange(0, 7).Draw(t, "task")))
	r.Claim = rapid.Int32Range(1, 4).Draw(t, "claim")
	r.Priority = rapid.Int32Range(0, 2).Draw(t, "priority")
	queuedAt(c.now().Add(-time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second))(r)
	if k := rapid.IntRange(0, 6).Draw(t, "cores"); k > 0 {
		withCores(float64(k-1) / 2)(r)
	}
	r.Resources.MemoryMb = rapid.SampledFrom([]int32{0, 0, 512, 3000}).Draw(t, "memory")
	r.Resources.Gpus = rapid.SampledFrom([]int32{0, 0, 0, 1}).Draw(t, "gpus")
	r.Constraints.NodeLabels = rapid.SampledFrom([][]string{nil, nil, {"x"}, {"y"}}).Draw(t, "labels")
	r.Constraints.MaxParallelPerNode = rapid.SampledFrom([]int32{0, 0, 0, 1, 2}).Draw(t, "perNode")
	r.Constraints.TargetNode = rapid.SampledFrom([]string{"", "", "", "", "a"}).Draw(t, "target")
	r.AvoidNodes = rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a", "b"}}).Draw(t, "avoid")
	return r
}

// The queue places exactly what the naive model places, on the same nodes, in
// every history: so it never exceeds a capacity that the model counts, serves
// priority and age, and leaves nothing waiting that fits. Everything that waits
// has a reason, and when all is released nothing is held.
func TestQueueAgainstModel(t *testing.T) {
	placedOnce := 0
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		m := &model{clock: c, machine: map[string]string{}, foreign: map[string][]modelForeign{}, claims: map[string]*modelClaim{},
			gone: map[string]int32{}, stale: map[string][]*v1.RunningAttempt{}, mean: map[string]time.Duration{}}
		q := New(Options{Now: c.now, Settle: time.Hour, ReasonInterval: time.Minute})
		told := map[string]bool{}
		q.SetNodes(m.snapshots(t))
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			runID := rapid.SampledFrom([]string{"r0", "r1"}).Draw(t, "run")
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				q.SetNodes(m.snapshots(t))
			case 1, 2:
				task, claim := fmt.Sprintf("t%d", rapid.IntRange(0, 7).Draw(t, "task")), rapid.Int32Range(1, 4).Draw(t, "claim")
				if q.Knows(runID) {
					m.release(runID, task, claim)
				}
				release(q, runID, task, claim)
			case 3:
				c.add(time.Duration(rapid.IntRange(1, 15).Draw(t, "wait")) * 100 * time.Millisecond)
			default:
				for range rapid.IntRange(1, 6).Draw(t, "requests") {
					req := drawRequest(t, c)
					m.request(runID, req)
					q.Request(runID, []*v1.TaskRequest{req})
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "pass") == 0 {
				continue
			}
			placedOnce += checkPass(t, q, m, told)
		}
		for _, id := range []string{"r0", "r1"} {
			q.Forget(id)
		}
		checkEmpty(t, q)
	})
	if placedOnce == 0 {
		t.Error("nothing was ever placed anew: the test tests nothing")
	}
}

// checkPass compares a pass of both, and returns how much was placed.
func checkPass(t *rapid.T, q *Queue, m *model, told map[string]bool) int {
	want := m.place()
	q.Place()
	got := map[string]string{}
	for _, runID := range []string{"r0", "r1"} {
		placed, stuck := q.Take(runID)
		for _, a := range placed {
			id := runID + "/" + a.Task
			c := m.claims[id]
			if c == nil || c.req.Claim != a.Claim || c.node != a.Node {
				t.Fatalf("%s claim %d was told to be on %q, the model has %+v", id, a.Claim, a.Node, c)
			}
			// An assignment that was told before comes again when it is asked for again.
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
	for _, n := range q.nodes {
		if n.holds != (amount{}) || len(n.held) > 0 || n.byAge.Len() > 0 {
			t.Fatalf("node %s still holds %+v", n.name, n.holds)
		}
		if n.machine.holds != (amount{}) || n.machine.unseenMB != 0 {
			t.Fatalf("the machine of %s still holds %+v and %d MiB unseen", n.name, n.machine.holds, n.machine.unseenMB)
		}
	}
	if len(q.shapes)+len(q.timed)+len(q.runs)+len(q.news) > 0 {
		t.Fatalf("%d shapes, %d time-outs, %d runs and %d with news are left", len(q.shapes), len(q.timed), len(q.runs), len(q.news))
	}
}

package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// sampleFleet is a queue that samples, with a model and a changing fleet. It draws everything from
// a single seed, because the fleet has too many nodes to draw each figure with rapid.
type sampleFleet struct {
	*rand.Rand
	*model
	q    *Queue
	next int
}

func (y *sampleFleet) chance(of int) bool { return y.IntN(of) == 0 }

// refresh gives a part of the fleet new snapshots.
func (y *sampleFleet) refresh(size int) {
	for i := range size {
		name := fmt.Sprintf("n%02d", i)
		if y.chance(12) {
			delete(y.nodes, name)
		} else if _, present := y.nodes[name]; !present || y.chance(3) {
			y.nodes[name] = y.node(name)
			delete(y.refused, name)
		}
		y.machine[name] = name
	}
	var fleet []Node
	for _, name := range slices.Sorted(maps.Keys(y.nodes)) {
		n := y.nodes[name]
		for _, c := range y.on(name) {
			c.seen = slices.ContainsFunc(n.Snapshot.Running, func(a *v1.RunningAttempt) bool {
				return a.RunId == c.run && a.Task == c.req.Task && a.Claim == c.req.Claim
			})
		}
		fleet = append(fleet, n)
	}
	for name := range y.machine {
		if _, present := y.nodes[name]; !present {
			for _, c := range y.on(name) {
				c.seen = false
			}
			y.forgetGone(name)
		}
	}
	y.q.SetNodes(fleet)
}

func (y *sampleFleet) node(name string) Node {
	y.beats++
	n := aNode(name, slots(1+y.Int32N(3)))
	n.Sequence, n.Cpu.Cores, n.Cpu.UsagePercent = y.beats, 3, float64(y.IntN(100))
	if y.chance(2) {
		n.Labels = []string{"x"}
	}
	if y.chance(3) {
		gpusOn(0, 1, 1)(n)
		numaNodes(2, 2, 4096)(n)
	}
	for _, c := range y.sortedOn(name) {
		n.Running = append(n.Running, c.shown())
	}
	state := v1.NodeActive
	if y.chance(10) {
		state = v1.NodeStale
	}
	return Node{Snapshot: n, State: state}
}

func (y *sampleFleet) ask(k int) {
	for range k {
		y.next++
		r := aTask(fmt.Sprintf("t%d", y.next), withPriority(y.Int32N(3)), queuedAt(y.clock.now()))
		withCores([]float64{0, 0.5, 1, 2}[y.IntN(4)])(r)
		r.Resources.MemoryMb = []int32{0, 0, 3000}[y.IntN(3)]
		r.Resources.Gpus = []float64{0, 0, 0, 1, 2, 0.5, 0.3}[y.IntN(7)]
		switch y.IntN(6) {
		case 0:
			r.Constraints.NodeLabels = []string{"x"}
		case 1:
			r.AvoidNodes = []string{"n00", "n01", "n02"}
		case 2:
			r.Constraints.ForbiddenNodes = []string{"n03"}
		case 3:
			r.Constraints.AllowedNodes = []string{"n01", "n04", "n05", "n07"}
		}
		y.request("r", r)
		y.q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{r})
	}
}

func (y *sampleFleet) finish() {
	for _, id := range slices.Sorted(maps.Keys(y.claims)) {
		c := y.claims[id]
		if c.node == "" || y.chance(3) {
			continue
		}
		outcome := []string{"done", "done", "refused", "moved"}[c.seq%4]
		y.release("r", c.req.Task, 1, outcome)
		y.q.Release("r", []*historyv1.ClaimRef{{Task: c.req.Task, Claim: 1, Outcome: outcome}})
	}
}

// follow makes a pass and applies the queue's assignments to the model, in the order of the queue.
// It returns an error if the queue has broken a rule: an unplaced request must fit nowhere when its
// turn comes, and a placed one must fit its node, and may be on an avoided node or have to wait
// only if no node is better in that respect.
func (y *sampleFleet) follow() error {
	y.q.Place()
	y.q.Take("r")
	for _, id := range y.waiting() {
		c := y.claims[id]
		best := y.best(c)
		r := y.q.demand.requestOf(c.run, c.req.Task)
		if r.state != assigned {
			if best != "" {
				return fmt.Errorf("%s waits although it fits %s", id, best)
			}
			continue
		}
		name := r.place.node.name
		fits, ahead := y.room(c, name)
		if !fits || ahead && !y.mayWait(c, name) {
			return fmt.Errorf("%s is on %s, where it does not fit", id, name)
		}
		_, bestAhead := y.room(c, best)
		avoids := func(name string) bool { return slices.Contains(c.req.AvoidNodes, name) }
		if avoids(name) && !avoids(best) || avoids(name) == avoids(best) && ahead && !bestAhead {
			return fmt.Errorf("%s is on %s, where it is avoided or waits; not so on %s", id, name, best)
		}
		if err := y.checkGrant(c, name, r.place.grant); err != nil {
			return fmt.Errorf("%s on %s: %w", id, name, err)
		}
		c.node, c.at, c.grant, c.seen = name, y.clock.now(), r.place.grant, false
	}
	return nil
}

// TestSamplesBreakNoRule checks that sampling affects only the choice between valid nodes.
func TestSamplesBreakNoRule(t *testing.T) {
	placed := 0
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		seed := rapid.Uint64().Draw(t, "seed")
		y := &sampleFleet{Rand: rand.New(rand.NewPCG(seed, 1)), model: newModel(c)}
		y.q = New(Options{Now: c.now, SampleAbove: rapid.IntRange(1, 8).Draw(t, "above"), Sample: rapid.IntRange(1, 4).Draw(t, "sample"),
			Rand: rand.New(rand.NewPCG(seed, 2)), Settle: time.Hour, FIFO: true, NoReservations: true})
		size := rapid.IntRange(1, 40).Draw(t, "nodes")
		y.refresh(size)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			y.ask(y.IntN(20))
			if err := y.follow(); err != nil {
				t.Fatal(err)
			}
			for name := range y.machine {
				placed += len(y.on(name))
			}
			c.add(time.Duration(y.IntN(900)) * time.Millisecond)
			y.finish()
			if y.chance(2) {
				y.refresh(size)
			}
		}
		y.q.Forget("r")
		checkEmpty(t, y.q)
	})
	if placed == 0 {
		t.Error("nothing was ever placed: the test tests nothing")
	}
}

// TestBestOfSampleIsNearlyBestOfAll checks that the best node of a sample is nearly as good as the best of all
// nodes.
func TestBestOfSampleIsNearlyBestOfAll(t *testing.T) {
	const size = 2000
	var fleet []Node
	for i := range size {
		fleet = append(fleet, live(aNode(fmt.Sprintf("n%04d", i), func(n *v1.NodeSnapshot) {
			n.Cpu.UsagePercent = float64(i) * 100 / size
		}))...)
	}
	q := New(Options{Now: newClock().now, Rand: rand.New(rand.NewPCG(1, 2))})
	q.SetNodes(fleet)
	rank := func(tasks, first int) float64 {
		q.Request(Run{ID: "r"}, requests(first, tasks))
		q.Place()
		placed, _ := q.Take("r")
		sum := 0.0
		for _, a := range placed {
			var i int
			if _, err := fmt.Sscanf(a.Node, "n%d", &i); err != nil {
				t.Fatal(err)
			}
			sum += float64(i) / size
		}
		return sum / float64(len(placed))
	}
	if got := rank(200, 0); got > 0.25 {
		t.Errorf("200 at once came on nodes that were on average at %.2f from the best", got)
	}
	sum := 0.0
	for i := range 200 {
		sum += rank(1, 1000+i)
	}
	if got := sum / 200; got > 0.25 {
		t.Errorf("200 one by one came on nodes that were on average at %.2f from the best", got)
	}
}

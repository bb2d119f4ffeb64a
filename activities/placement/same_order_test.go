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
)

// twins are two queues that get the same input.
type twins struct {
	queues [2]*Queue
	clock  *clock
	fleet  []Node
	on     map[claimKey]bool
	next   int
}

func (tw *twins) both(do func(*Queue)) {
	for _, q := range tw.queues {
		do(q)
	}
}

// change gives some nodes another state or lets them leave.
func (tw *twins) change(t *rapid.T) {
	var nodes []Node
	for _, n := range tw.fleet {
		n.State = rapid.SampledFrom([]string{v1.NodeActive, v1.NodeActive, v1.NodeActive, v1.NodeStale, ""}).Draw(t, "state")
		if n.State != "" {
			nodes = append(nodes, n)
		}
	}
	tw.both(func(q *Queue) { q.SetNodes(nodes) })
}

// ask requests the instances of a task, or the members of a gang.
func (tw *twins) ask(t *rapid.T) {
	tw.next++
	run := rapid.SampledFrom([]string{"a1", "a2", "b1", "c1"}).Draw(t, "run")
	changes := []func(*historyv1.TaskRequest){
		withCores(float64(rapid.IntRange(0, 6).Draw(t, "cores")) / 2), withPriority(rapid.Int32Range(0, 1).Draw(t, "priority")),
		queuedAt(tw.clock.now()), withGPUs(rapid.SampledFrom([]float64{0, 0, 0, 0.5, 1}).Draw(t, "GPUs")),
	}
	if rapid.Bool().Draw(t, "limited") {
		changes = append(changes, withLimit(time.Duration(rapid.IntRange(1, 30).Draw(t, "limit"))*time.Second))
	}
	size := rapid.IntRange(1, 5).Draw(t, "size")
	reqs := tasks(fmt.Sprintf("t%d", tw.next), size, changes...)
	if rapid.IntRange(0, 4).Draw(t, "gang") == 0 {
		reqs = gangOf(fmt.Sprintf("t%d", tw.next), size, 0, changes...)
	}
	tw.both(func(q *Queue) { q.Request(Run{ID: run, Owner: run[:1], Workflow: "w"}, reqs) })
}

// end ends one attempt, or all of a run.
func (tw *twins) end(t *rapid.T) {
	keys := slices.SortedFunc(maps.Keys(tw.on), func(a, b claimKey) int { return strings.Compare(a.run+a.task, b.run+b.task) })
	if len(keys) == 0 {
		return
	}
	key := keys[rapid.IntRange(0, len(keys)-1).Draw(t, "which")]
	if rapid.IntRange(0, 5).Draw(t, "forget") == 0 {
		tw.both(func(q *Queue) { q.Forget(key.run) })
		maps.DeleteFunc(tw.on, func(k claimKey, _ bool) bool { return k.run == key.run })
		return
	}
	delete(tw.on, key)
	tw.both(func(q *Queue) { release(q, key.run, key.task, 1) })
}

// pass makes a pass of both queues and compares everything that they report.
func (tw *twins) pass(t *rapid.T) {
	var reports [2][]string
	for i, q := range tw.queues {
		for _, run := range q.Place() {
			placed, stuck := q.Take(run)
			for _, a := range placed {
				tw.on[claimKey{run, a.Task, 1}] = true
				reports[i] = append(reports[i], fmt.Sprintf("%s/%s on %s with GPUs %v", run, a.Task, a.Node, a.Gpus))
			}
			for _, w := range stuck {
				reports[i] = append(reports[i], fmt.Sprintf("%s/%s waits: %s", run, w.Task, w.Reason))
			}
		}
	}
	if !slices.Equal(reports[0], reports[1]) {
		t.Fatalf("one queue reports\n%s\nthe other one\n%s", strings.Join(reports[0], "\n"), strings.Join(reports[1], "\n"))
	}
	at, ok := tw.queues[0].NextDeadline()
	if other, has := tw.queues[1].NextDeadline(); ok != has || !at.Equal(other) {
		t.Fatalf("the deadlines are %v and %v", at, other)
	}
}

// TestSameInputGivesTheSameOrder checks that two queues with the same seed that get the same input place the same requests on the
// same nodes and report the same.
func TestSameInputGivesTheSameOrder(t *testing.T) {
	testneeds.Checks(t, 2000)
	seen := 0
	rapid.Check(t, func(t *rapid.T) {
		tw := &twins{clock: newClock(), on: map[claimKey]bool{}}
		seed, above := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 6).Draw(t, "above")
		isFIFO := rapid.IntRange(0, 3).Draw(t, "FIFO") == 0
		for i := range tw.queues {
			tw.queues[i] = New(Options{Now: tw.clock.now, Rand: rand.New(rand.NewPCG(seed, 1)), SampleAbove: above, FIFO: isFIFO})
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
			n := aNode(fmt.Sprintf("n%d", i), slots(rapid.Int32Range(1, 6).Draw(t, "slots")), gpus(rapid.IntRange(0, 2).Draw(t, "gpus")))
			if rapid.IntRange(0, 3).Draw(t, "is shared") == 0 {
				onMachine("m")(n)
			}
			tw.fleet = append(tw.fleet, live(n)...)
		}
		tw.both(func(q *Queue) { q.SetNodes(tw.fleet) })
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				tw.change(t)
			case 1, 2:
				tw.clock.add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "wait")) * time.Millisecond)
			case 3, 4, 5:
				tw.end(t)
			default:
				tw.ask(t)
			}
			tw.pass(t)
		}
		seen += len(tw.on)
	})
	if seen == 0 {
		t.Error("nothing was ever placed: the test tests nothing")
	}
}

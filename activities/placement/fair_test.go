package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// yard is a queue with reservations, and the attempts that it has placed.
type yard struct {
	*Queue
	t     *testing.T
	clock *clock
	on    map[claimKey]string // nodes of the attempts
	runs  map[string]Run
	why   map[string]string // newest reason of each waiting task
}

func newYard(t *testing.T, opts Options, nodes ...*v1.NodeSnapshot) *yard {
	c := newClock()
	opts.Now, opts.Epoch = c.now, "e1"
	q := New(opts)
	q.SetNodes(live(nodes...))
	return &yard{Queue: q, t: t, clock: c, on: map[claimKey]string{}, runs: map[string]Run{}, why: map[string]string{}}
}

// ask requests tasks for a run of an owner.
func (y *yard) ask(owner, runID string, reqs ...*historyv1.TaskRequest) {
	y.runs[runID] = Run{ID: runID, Owner: owner, Workflow: "w"}
	for _, r := range reqs {
		if r.QueuedAt == nil {
			queuedAt(y.clock.now())(r)
		}
	}
	y.Request(y.runs[runID], reqs)
	y.pass()
}

// pass makes a pass and returns the tasks that it has placed, sorted.
func (y *yard) pass() (placed []string) {
	for _, runID := range y.Place() {
		assigned, stuck := y.Take(runID)
		for _, a := range assigned {
			y.on[claimKey{runID, a.Task, a.Claim}] = a.Node
			delete(y.why, a.Task)
			placed = append(placed, a.Task)
		}
		for _, w := range stuck {
			y.why[w.Task] = w.Reason
		}
	}
	slices.Sort(placed)
	return placed
}

// end ends the attempt of a task, and returns what takes its place.
func (y *yard) end(runID, task string) []string {
	y.t.Helper()
	key := claimKey{runID, task, 1}
	if y.on[key] == "" {
		y.t.Fatalf("task %s of run %s is on no node", task, runID)
	}
	delete(y.on, key)
	release(y.Queue, runID, task, 1)
	return y.pass()
}

// wait lets time pass, with all passes that are due.
func (y *yard) wait(d time.Duration) (placed []string) {
	for until := y.clock.now().Add(d); y.clock.now().Before(until); {
		at, ok := y.NextDeadline()
		if !ok || at.After(until) {
			at = until
		}
		y.clock.t = at.Add(time.Millisecond)
		placed = append(placed, y.pass()...)
	}
	return placed
}

func tasks(base string, n int, changes ...func(*historyv1.TaskRequest)) []*historyv1.TaskRequest {
	var out []*historyv1.TaskRequest
	for i := range n {
		out = append(out, aTask(fmt.Sprintf("%s[%d]", base, i), changes...))
	}
	return out
}

func withLimit(d time.Duration) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Timeout = durationpb.New(d) }
}

// TestWideTaskStartsBeforeSixtyNarrowOnes checks that a task of several cores and a higher priority is not
// overtaken by tasks that take each core as it becomes free.
func TestWideTaskStartsBeforeSixtyNarrowOnes(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"))
	y.ask("", "narrow", tasks("each", 60)...)
	y.ask("", "wide", aTask("wide", withCores(2), withPriority(10)))
	y.wait(2 * time.Second)
	if got := y.end("narrow", "each[0]"); len(got) > 0 {
		t.Fatalf("%v was placed: the core is reserved", got)
	}
	if got := y.end("narrow", "each[1]"); !slices.Equal(got, []string{"wide"}) {
		t.Errorf("%v was placed, want wide", got)
	}
	if got := y.end("narrow", "each[2]"); !slices.Equal(got, []string{"each[4]"}) {
		t.Errorf("%v was placed, want the next narrow one", got)
	}
}

// TestTaskForFourGPUsStartsInAStreamOfOthers checks the same for GPUs, with priorities that are equal.
func TestTaskForFourGPUsStartsInAStreamOfOthers(t *testing.T) {
	gpu := func(n int32) func(*historyv1.TaskRequest) {
		return func(r *historyv1.TaskRequest) { r.Resources.Gpus, r.Resources.Cores = float64(n), new(float64) }
	}
	y := newYard(t, Options{}, aNode("a", gpus(4), slots(8)), aNode("b", slots(8)))
	y.ask("ada", "stream", tasks("one", 4, gpu(1))...)
	y.ask("bob", "wide", aTask("wide", gpu(4)))
	for i := range 4 {
		y.ask("ada", "stream", aTask(fmt.Sprintf("one[%d]", 4+i), gpu(1)))
		y.wait(time.Second)
		got := y.end("stream", fmt.Sprintf("one[%d]", i))
		if want := map[bool][]string{true: {"wide"}}[i == 3]; !slices.Equal(got, want) {
			t.Fatalf("end %d: %v was placed, want %v", i, got, want)
		}
	}
	if why := y.why["one[4]"]; !strings.Contains(why, "a is reserved for task wide of run wide") && !strings.Contains(why, "GPU") {
		t.Errorf("one[4] waits because %q", why)
	}
}

// TestEchoDoesNotWaitForThreeHundredInstances checks that a run that holds nothing is next, of the same owner
// and of another one.
func TestEchoDoesNotWaitForThreeHundredInstances(t *testing.T) {
	for _, owner := range []string{"ada", "bob"} {
		y := newYard(t, Options{}, aNode("a"))
		y.ask("ada", "wide", tasks("each", 300)...)
		y.wait(time.Minute)
		y.ask(owner, "colleague", aTask("echo"))
		if got := y.end("wide", "each[0]"); !slices.Equal(got, []string{"echo"}) {
			t.Errorf("echo of %s: %v was placed first", owner, got)
		}
	}
	y := newYard(t, Options{FIFO: true}, aNode("a"))
	y.ask("ada", "wide", tasks("each", 300)...)
	y.wait(time.Minute)
	y.ask("bob", "colleague", aTask("echo"))
	if got := y.end("wide", "each[0]"); slices.Equal(got, []string{"echo"}) {
		t.Error("echo overtakes in the order of arrival")
	}
}

// TestTasksOfARunStartInTheOrderInWhichTheyWereQueued checks that the instances of a fan-out let an older task of their run start
// between them, if several places become free at once.
func TestTasksOfARunStartInTheOrderInWhichTheyWereQueued(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"))
	y.ask("ada", "large", aTask("large", withCores(4), withLimit(time.Hour)))
	for _, task := range []string{"each[0]", "other", "each[1]", "each[2]", "each[3]"} {
		y.clock.add(time.Second)
		y.ask("ada", "small", aTask(task, withCores(2)))
	}
	if got := y.end("large", "large"); !slices.Equal(got, []string{"each[0]", "other"}) {
		t.Errorf("%v were placed, want each[0] and other", got)
	}
}

// TestBackfillEndsBeforeTheReservation checks that a less urgent task starts on a reserved node exactly if its
// known duration ends in time, or if it fits beside.
func TestBackfillEndsBeforeTheReservation(t *testing.T) {
	minutes := func(n int) func(*historyv1.TaskRequest) { return withLimit(time.Duration(n) * time.Minute) }
	y := newYard(t, Options{}, aNode("a", func(n *v1.NodeSnapshot) { n.Cpu.Cores, n.MaxParallel = 8, 16 }))
	y.ask("", "old", aTask("long", withCores(5), minutes(10)))
	y.ask("", "wide", aTask("wide", withCores(7), withPriority(1)))
	y.wait(2 * time.Second)
	if want := "reserved on a, expected at 22:23:2"; !strings.HasPrefix(y.why["wide"], want) {
		t.Errorf("wide waits because %q, want %q...", y.why["wide"], want)
	}
	y.ask("", "unknown", aTask("unknown", withCores(2)))
	y.ask("", "late", aTask("late", withCores(2), minutes(20)))
	y.ask("", "short", aTask("short", withCores(2), minutes(5)))
	y.ask("", "beside", aTask("beside", withCores(1)))
	y.ask("", "beside too", aTask("beside too", withCores(0.5)))
	y.wait(2 * time.Second)
	for task, want := range map[string]bool{"unknown": false, "late": false, "short": true, "beside": true, "beside too": false} {
		if _, isPlaced := y.on[claimKey{task, task, 1}]; isPlaced != want {
			t.Errorf("%s is placed: %v, want %v (%s)", task, isPlaced, want, y.why[task])
		}
	}
	if want := "a is reserved for task wide of run wide, expected at 22:23:20 UTC"; !strings.Contains(y.why["late"], want) {
		t.Errorf("late waits because %q, want %q", y.why["late"], want)
	}
	y.end("beside", "beside")
	y.end("short", "short")
	if got := y.end("old", "long"); !slices.Contains(got, "wide") {
		t.Errorf("%v was placed, want wide", got)
	}
}

// TestUnknownEndAllowsNoBackfill checks that nothing is expected to end before a reservation of an unknown time.
func TestUnknownEndAllowsNoBackfill(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"))
	y.ask("", "old", aTask("long", withCores(3)))
	y.ask("", "wide", aTask("wide", withCores(4), withPriority(1)))
	y.wait(2 * time.Second)
	y.ask("", "short", aTask("short", withLimit(time.Second)))
	if len(y.on) != 1 || !strings.HasPrefix(y.why["wide"], "reserved on a, expected at an unknown time: ") {
		t.Errorf("placed %v; wide waits because %q", y.on, y.why["wide"])
	}
}

// TestMeasuredDurationsAllowBackfill checks that what earlier attempts of a task took counts, in all its runs.
func TestMeasuredDurationsAllowBackfill(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"))
	y.ask("", "first", aTask("short"), aTask("long", withCores(3)))
	y.wait(10 * time.Second)
	y.end("first", "short")
	y.wait(10 * time.Minute)
	y.end("first", "long")
	y.ask("", "old", aTask("long", withCores(3)))
	y.ask("", "wide", aTask("wide", withCores(4), withPriority(1)))
	y.wait(time.Second)
	y.ask("", "second", aTask("short"), aTask("other"))
	if y.on[claimKey{"second", "short", 1}] == "" || y.on[claimKey{"second", "other", 1}] != "" {
		t.Errorf("placed %v", y.on)
	}
}

// TestReservationMovesFromASilentNode checks that a node that is silent holds no reservation.
func TestReservationMovesFromASilentNode(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"), aNode("b"))
	y.ask("", "old", tasks("each", 8)...)
	y.ask("", "wide", aTask("wide", withCores(4), withPriority(1)))
	y.wait(time.Second)
	at := y.scheduler.reservations.held[0].node.name
	nodes := live(aNode("a"), aNode("b"))
	for i := range nodes {
		if nodes[i].Snapshot.GetName() == at {
			nodes[i].State = v1.NodeStale
		}
	}
	y.SetNodes(nodes)
	y.wait(2 * time.Second)
	if held := y.scheduler.reservations.held; len(held) != 1 || held[0].node.name == at {
		t.Errorf("%s is silent, and %d reservations are held", at, len(held))
	}
	y.Forget("wide")
	if held := y.scheduler.reservations.held; len(held) != 0 {
		t.Errorf("the run has ended, and %v is reserved", held[0].node.name)
	}
	if got := y.pass(); len(got) != 0 {
		t.Errorf("%v was placed on nodes without room", got)
	}
}

// TestOwnersShareByWeight checks that owners who always ask get the fleet in proportion to their weights, that a
// group counts as one owner, and that runs of an owner share what the owner gets.
func TestOwnersShareByWeight(t *testing.T) {
	y := newYard(t, Options{FairHalfLife: time.Minute}, aNode("a", func(n *v1.NodeSnapshot) { n.Cpu.Cores, n.MaxParallel = 16, 16 }))
	y.SetTerms(map[string]Terms{"heavy": {Weight: 2}, "team": {Weight: 1, Members: []string{"cy", "di"}}})
	for _, owner := range []string{"heavy", "light", "cy", "di"} {
		for _, run := range []string{"1", "2"} {
			y.ask(owner, owner+run, tasks("each", 1000)...)
		}
	}
	held := map[string]float64{}
	const rounds = 3000
	next := 0
	for range rounds {
		y.clock.add(time.Second)
		running := y.sorted()
		key := running[next%len(running)]
		next += 7
		y.end(key.run, key.task)
		if next > 7*rounds/2 {
			for key := range y.on {
				held[key.run] += 1.0 / 16 / (rounds / 2)
			}
		}
	}
	want := map[string]float64{"heavy1": .25, "heavy2": .25, "light1": .125, "light2": .125, "cy1": .0625, "cy2": .0625, "di1": .0625, "di2": .0625}
	for run, share := range want {
		if math.Abs(held[run]-share) > 0.03 {
			t.Errorf("run %s held %.3f of the fleet, want %.3f", run, held[run], share)
		}
	}
}

// sorted returns the running attempts in a fixed order.
func (y *yard) sorted() []claimKey {
	var keys []claimKey
	for key := range y.on {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b claimKey) int { return strings.Compare(a.run+a.task, b.run+b.task) })
	return keys
}

// TestTakeoverForgetsNothingThatRuns checks that a new queue counts what owners hold according to the snapshots,
// and what they had used according to the earlier queue.
func TestTakeoverForgetsNothingThatRuns(t *testing.T) {
	holder := func(n *v1.NodeSnapshot) {
		n.Running = []*v1.RunningAttempt{
			{RunId: "r1", Task: "x", Claim: 1, Cores: 2, Owner: "ada", Timeout: durationpb.New(time.Hour)},
			{RunId: "r2", Task: "x", Claim: 1, Cores: 1, Owner: "bob"},
		}
	}
	y := newYard(t, Options{}, aNode("a", holder))
	y.ask("ada", "r1", aTask("next", withCores(1)))
	y.ask("ada", "r1", tasks("each", 3)...)
	y.ask("bob", "r2", tasks("their", 3)...)
	if y.on[claimKey{"r1", "next", 1}] != "a" {
		t.Fatalf("placed %v", y.on)
	}
	y.clock.add(2 * time.Second)
	if got := y.end("r1", "next"); !slices.Equal(got, []string{"their[0]"}) {
		t.Errorf("%v was placed: bob holds less", got)
	}

	y = newYard(t, Options{}, aNode("a"))
	y.RestoreUsage(map[string]*v1.OwnerUse{"ada": {Lately: 0.9}, "bob": {Lately: 0.1}}, y.clock.now())
	y.ask("cy", "r0", aTask("all", withCores(4)))
	y.ask("ada", "r1", aTask("ada's"))
	y.clock.add(time.Second)
	y.ask("bob", "r2", tasks("bob's", 4)...)
	y.end("r0", "all")
	if y.on[claimKey{"r1", "ada's", 1}] != "" {
		t.Errorf("placed %v: ada has used more", y.on)
	}
}

// TestQuotasHold checks that an owner, and a group together, hold no more than their quota, that what waits for the quota says
// so, and that it is placed as soon as the quota allows it.
func TestQuotasHold(t *testing.T) {
	y := newYard(t, Options{}, aNode("a", gpus(4), slots(16), func(n *v1.NodeSnapshot) { n.Cpu.Cores = 16 }))
	y.SetTerms(map[string]Terms{
		"ann": {MaxCores: 1.5}, "team": {Members: []string{"bob", "cy"}, MaxTasks: 3}, "di": {MaxGPUs: 0.5},
	})
	y.ask("ann", "r1", tasks("each", 3)...)
	y.ask("bob", "r2", tasks("b", 2)...)
	y.ask("cy", "r3", tasks("c", 2)...)
	y.ask("di", "r4", aTask("part", withGPUs(0.5)), aTask("other", withGPUs(0.5)), aTask("none"))
	for task, want := range map[string]string{
		"each[1]": "quota of ann: at most 1.5 cores", "c[1]": "quota of team: at most 3 tasks at once", "other": "quota of di: at most 0.5 GPUs",
	} {
		if y.why[task] != want {
			t.Errorf("%s waits because %q, want %q", task, y.why[task], want)
		}
	}
	if len(y.on) != 6 || len(y.scheduler.reservations.held) > 0 {
		t.Errorf("placed %v, %d reservations", y.on, len(y.scheduler.reservations.held))
	}
	y.clock.add(2 * time.Second)
	if got := y.end("r2", "b[0]"); !slices.Equal(got, []string{"c[1]"}) {
		t.Errorf("%v was placed, want c[1]", got)
	}
	y.SetTerms(map[string]Terms{"ann": {MaxCores: 3}})
	if got := y.pass(); !slices.Equal(got, []string{"each[1]", "each[2]", "other"}) {
		t.Errorf("%v was placed with larger quotas", got)
	}
}

// TestUsageShowsWhatOwnersHold checks the figures of owners and groups, and to what each is entitled.
func TestUsageShowsWhatOwnersHold(t *testing.T) {
	y := newYard(t, Options{}, aNode("a"))
	y.SetTerms(map[string]Terms{"ann": {Weight: 3}, "team": {Members: []string{"bob"}}})
	y.ask("ann", "r1", tasks("each", 5)...)
	y.ask("bob", "r2", aTask("his"))
	y.clock.add(time.Hour)
	uses := y.Usage()
	ann, bob, team := uses["ann"], uses["bob"], uses["team"]
	if ann.GetHeld() != 1 || math.Abs(ann.GetLately()-0.5) > 1e-9 || ann.GetEntitled() != 0.75 || ann.GetRunning() != 4 || ann.GetWaiting() != 1 || ann.GetCores() != 4 {
		t.Errorf("ann: %v", ann)
	}
	if bob.GetGroup() != "team" || bob.GetEntitled() != 0.25 || team.GetEntitled() != 0.25 || team.GetWaiting() != 1 {
		t.Errorf("bob: %v, team: %v", bob, team)
	}
	y.Forget("r1")
	y.Forget("r2")
	y.clock.add(100 * time.Hour)
	if uses := y.Usage(); len(uses) > 0 || len(y.scheduler.accounts.runs) > 0 {
		t.Errorf("nothing runs, and %v is remembered, with %d runs", uses, len(y.scheduler.accounts.runs))
	}
}

// TestWeightsHoldOnFewPlaces checks that an owner of twice the weight gets twice as much where the fleet has two places only, soon
// and not only after a half-life.
func TestWeightsHoldOnFewPlaces(t *testing.T) {
	y := newYard(t, Options{}, aNode("a", slots(2)))
	y.SetTerms(map[string]Terms{"ann": {Weight: 2}})
	y.ask("bob", "rb", tasks("b", 100)...)
	y.ask("ann", "ra", tasks("a", 100)...)
	ended := map[string]int{}
	var running []claimKey // the oldest first
	note := func() {
		for key := range y.on {
			if !slices.Contains(running, key) {
				running = append(running, key)
			}
		}
	}
	note()
	for range 60 {
		y.wait(2 * time.Second)
		key := running[0]
		running = running[1:]
		ended[key.run]++
		y.end(key.run, key.task)
		note()
	}
	if ended["ra"] < 36 || ended["ra"] > 44 {
		t.Errorf("of 60 tasks that have ended, %v are of ann and bob; ann has twice the weight", ended)
	}
}

// TestChangedQuotaIsReportedAtOnce checks that the reason of tasks that wait for a quota changes with the quota.
func TestChangedQuotaIsReportedAtOnce(t *testing.T) {
	y := newYard(t, Options{NoReservations: true}, aNode("a", slots(8)))
	y.SetTerms(map[string]Terms{"cy": {MaxTasks: 1, MaxGPUs: 1}})
	y.ask("cy", "r", tasks("each", 6, withCores(0.5))...)
	if want := "quota of cy: at most 1 task at once"; y.why["each[5]"] != want {
		t.Errorf("waits because %q, want %q", y.why["each[5]"], want)
	}
	y.SetTerms(map[string]Terms{"cy": {MaxCores: 1}})
	y.wait(time.Second)
	if want := "quota of cy: at most 1 core"; y.why["each[5]"] != want {
		t.Errorf("waits because %q, want %q", y.why["each[5]"], want)
	}
	y.ask("cy", "big", aTask("big", withCores(2)))
	if want := "quota of cy: at most 1 core, and 2 are asked"; y.why["big"] != want {
		t.Errorf("waits because %q, want %q", y.why["big"], want)
	}
}

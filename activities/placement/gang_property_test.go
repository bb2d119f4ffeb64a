package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// gangYard is a queue with a random fleet, and the gangs and ordinary tasks that runs ask of it.
type gangYard struct {
	*Queue
	t     *rapid.T
	clock *clock
	nodes []Node
	asked map[claimKey]*historyv1.TaskRequest
	on    map[claimKey]string
	late  map[string][]*historyv1.TaskRequest // requests of members that have not been sent, by run
	ended map[string]bool                     // by gangID: some member has ended
	next  int
	seen  map[string]int
}

// gangID identifies the gang of a request across runs.
func gangID(key claimKey) string { return key.run + "/" + baseName(key.task) }

func (y *gangYard) drawFleet() {
	for i := range rapid.IntRange(1, 6).Draw(y.t, "nodes") {
		n := aNode(fmt.Sprintf("n%d", i), slots(rapid.Int32Range(1, 6).Draw(y.t, "slots")))
		if rapid.IntRange(0, 3).Draw(y.t, "is shared") == 0 {
			onMachine("m")(n)
			gpus(1)(n)
		} else {
			gpus(rapid.IntRange(0, 2).Draw(y.t, "gpus"))(n)
		}
		y.nodes = append(y.nodes, live(n)...)
	}
	y.SetNodes(y.nodes)
}

// warmUp makes the queue prefetch to all nodes, by a short attempt on each.
func (y *gangYard) warmUp() {
	for _, n := range y.nodes {
		r := aTask("quick on "+n.Snapshot.Name, pinned(n.Snapshot.Name), withCores(0))
		y.asked[claimKey{"a1", r.Task, 1}] = r
		y.request("a1", []*historyv1.TaskRequest{r})
	}
	y.pass()
	for len(y.on) > 0 {
		y.end(0, v1.OutcomeDone)
	}
}

// ask requests a task, or a gang, some of whose requests may come later.
func (y *gangYard) ask() {
	y.next++
	size, perNode := rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4, 7}).Draw(y.t, "members"), 0
	changes := []func(*historyv1.TaskRequest){
		withCores(float64(rapid.IntRange(0, 8).Draw(y.t, "cores")) / 2), withPriority(rapid.Int32Range(0, 2).Draw(y.t, "priority")),
		queuedAt(y.clock.now()), withGPUs(rapid.SampledFrom([]float64{0, 0, 0, 0.5, 1, 2}).Draw(y.t, "GPUs")),
		withMemory(rapid.SampledFrom([]int32{0, 0, 3000}).Draw(y.t, "memory")),
	}
	if rapid.Bool().Draw(y.t, "limited") {
		changes = append(changes, withLimit(time.Duration(rapid.IntRange(1, 100).Draw(y.t, "limit"))*time.Second))
	}
	avoid := rapid.SampledFrom([][]string{nil, nil, {"n0", "n1"}}).Draw(y.t, "avoid")
	changes = append(changes, func(r *historyv1.TaskRequest) { r.AvoidNodes = avoid })
	name := fmt.Sprintf("t%d", y.next)
	reqs := []*historyv1.TaskRequest{aTask(name, changes...)}
	if size > 0 {
		perNode = rapid.IntRange(0, 2).Draw(y.t, "perNode")
		reqs = gangOf(name, size, perNode, changes...)
	}
	run := rapid.SampledFrom([]string{"a1", "a2", "b1", "c1"}).Draw(y.t, "run")
	for _, r := range reqs {
		y.asked[claimKey{run, r.Task, 1}] = r
	}
	if size > 1 && rapid.IntRange(0, 3).Draw(y.t, "late") == 0 {
		y.late[run] = append(y.late[run], reqs[1:]...)
		reqs = reqs[:1]
	}
	y.request(run, reqs)
}

func (y *gangYard) request(run string, reqs []*historyv1.TaskRequest) {
	y.Request(Run{ID: run, Owner: run[:1], Workflow: "w"}, reqs)
}

// sendLate sends the requests that runs have kept back.
func (y *gangYard) sendLate() {
	for _, run := range slices.Sorted(maps.Keys(y.late)) {
		y.request(run, y.late[run])
		delete(y.late, run)
	}
}

// end ends one of the attempts.
func (y *gangYard) end(k int, outcome string) {
	if len(y.on) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(y.on), func(a, b claimKey) int { return strings.Compare(a.run+a.task, b.run+b.task) })
	key := keys[k%len(keys)]
	if y.asked[key].Gang != nil {
		y.ended[gangID(key)] = true
	}
	delete(y.on, key)
	delete(y.asked, key)
	y.Release(key.run, []*historyv1.ClaimRef{{Task: key.task, Claim: key.claim, Outcome: outcome}})
}

// replace drops a waiting request of a member of a gang. The request for its next claim comes later.
func (y *gangYard) replace(k int) {
	var keys []claimKey
	for key, r := range y.asked {
		if r.Gang != nil && y.on[key] == "" && !slices.Contains(y.late[key.run], r) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.SortFunc(keys, func(a, b claimKey) int { return strings.Compare(a.run+a.task, b.run+b.task) })
	key := keys[k%len(keys)]
	r := proto.CloneOf(y.asked[key])
	delete(y.asked, key)
	y.Release(key.run, []*historyv1.ClaimRef{{Task: key.task, Claim: key.claim}})
	r.Claim++
	y.asked[claimKey{key.run, key.task, r.Claim}] = r
	y.late[key.run] = append(y.late[key.run], r)
	y.seen["replaced"]++
}

func (y *gangYard) pass() {
	for _, run := range y.Place() {
		placed, stuck := y.Take(run)
		for _, a := range placed {
			y.on[claimKey{run, a.Task, a.Claim}] = a.Node
		}
		for _, w := range stuck {
			if w.Reason == "" {
				y.t.Fatalf("%s waits without a reason", w.Task)
			}
		}
	}
	checkCapacity(y.t, y.nodes, y.on, y.asked)
	y.checkMachines()
	y.checkGangs()
	y.checkPrefetched()
	y.checkReservations()
	y.checkRoom()
	if again := y.Place(); len(again) > 0 {
		y.t.Fatalf("a pass in which nothing has changed has news for %v", again)
	}
}

// checkMachines fails the test if the nodes of a machine have more together than the machine has. One that is prefetched to may have
// twice its cores.
func (y *gangYard) checkMachines() {
	for _, m := range y.fleet.ledger.machines {
		if n := m.nodes[0]; m.holds.milliCores > prefetchFactor*n.now.milliCores || m.holds.memoryMB > n.now.memoryMB {
			y.t.Fatalf("machine %s holds %+v", m.id, m.holds)
		}
		for index, use := range m.gpus {
			if use.Whole > 1 || use.Whole == 1 && use.Thousandths > 0 || use.Thousandths > 1000 {
				y.t.Fatalf("GPU %d of machine %s has %+v", index, m.id, use)
			}
		}
	}
}

// checkGangs fails the test if a part of a gang is placed, or too much of it on a node.
func (y *gangYard) checkGangs() {
	placed, onNode := map[string]int{}, map[string]int{}
	for key, node := range y.on {
		placed[gangID(key)]++
		if onNode[gangID(key)+" on "+node]++; y.asked[key].Gang.GetPerNode() > 0 && onNode[gangID(key)+" on "+node] > int(y.asked[key].Gang.PerNode) {
			y.t.Fatalf("%d members of %s are on %s, want %d", onNode[gangID(key)+" on "+node], gangID(key), node, y.asked[key].Gang.PerNode)
		}
	}
	for key, r := range y.asked {
		id := gangID(key)
		if n := placed[id]; r.Gang != nil && !y.ended[id] && n > 0 {
			y.seen["placed"]++
			if n != int(r.Gang.Size) {
				y.t.Fatalf("%d of %d members of %s are placed", n, r.Gang.Size, id)
			}
		}
	}
}

// checkPrefetched fails the test if a member of a gang waits in the queue of its node.
func (y *gangYard) checkPrefetched() {
	for _, n := range y.fleet.byName {
		tasks, milliCores := 0, int64(0)
		for e := n.byAge.Front(); e != nil; e = e.Next() {
			c := e.Value.(*claim)
			tasks++
			milliCores += c.grant.milliCores
			isAhead := tasks > n.now.slots || milliCores > n.now.milliCores && c.grant.milliCores > 0
			if isAhead {
				y.seen["prefetched"]++
			}
			if y.asked[c.key].GetGang() != nil && isAhead {
				y.t.Fatalf("%s waits in the queue of %s", c.key.task, n.name)
			}
		}
	}
}

// checkReservations fails the test if a gang holds fewer reservations than it needs.
func (y *gangYard) checkReservations() {
	of := map[*requestClass][]*reservation{}
	for _, res := range y.scheduler.reservations.held {
		s := res.request.class
		of[s] = append(of[s], res)
		for _, r := range res.members {
			if r.state != waiting || !r.hasReserved(res) || r.class != s {
				y.t.Fatalf("a reservation for %s, which is in state %d", r.task, r.state)
			}
		}
		if len(res.members) != s.gangSize() || res.node.machine.reservation != res {
			y.t.Fatalf("a reservation on %s for %d of %d members", res.node.name, len(res.members), s.gangSize())
		}
	}
	for s, held := range of {
		if s.gang == nil {
			continue
		}
		y.seen["reserved"]++
		most := 0
		for _, res := range held {
			most += y.scheduler.eval.mostMembers(&s.spec, slices.Values([]*node{res.node}))
			if res.at != held[0].at || res.isKnown != held[0].isKnown {
				y.t.Fatalf("the nodes of %s are expected at %v and %v", s.gang.Task, res.at, held[0].at)
			}
		}
		if most < s.gangSize() {
			y.t.Fatalf("the %d nodes reserved for %s hold %d of %d members", len(held), s.gang.Task, most, s.gangSize())
		}
	}
}

// checkRoom fails the test if without reservations a request waits although it fits, or a gang although all members do.
func (y *gangYard) checkRoom() {
	for _, s := range y.demand.classes.active {
		all := y.scheduler.reasons.refuse(&s.spec, s.first())
		if s.missing() == 0 && all.room == s.gangSize() && y.scheduler.reservations.isOff {
			y.t.Fatalf("%s waits although there is room for all of it", s.first().task)
		}
		if s.gang != nil && all.room > 0 {
			y.seen["left with some room"]++
		}
	}
}

// TestGangsAreWholeInAllHistories checks in random histories, with reservations and owners who take turns, that the members of a gang
// are placed together, that nodes have no more than they can hold and no more members than allowed, and that every gang that the
// fleet could hold is placed when nothing new arrives and attempts keep ending.
func TestGangsAreWholeInAllHistories(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		seed := rapid.Uint64().Draw(t, "seed")
		y := &gangYard{
			Queue: New(Options{
				Now: c.now, Rand: rand.New(rand.NewPCG(seed, 1)), SampleAbove: rapid.IntRange(1, 6).Draw(t, "above"),
				NoReservations: rapid.Bool().Draw(t, "no reservations"),
			}),
			t: t, clock: c, asked: map[claimKey]*historyv1.TaskRequest{}, on: map[claimKey]string{},
			late: map[string][]*historyv1.TaskRequest{}, ended: map[string]bool{}, seen: seen,
		}
		y.drawFleet()
		longest := 5000
		if rapid.Bool().Draw(t, "quick") {
			longest = 20
			y.warmUp()
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				c.add(time.Duration(rapid.IntRange(1, longest).Draw(t, "wait")) * time.Millisecond)
			case 1, 2:
				y.end(rapid.IntRange(0, 100).Draw(t, "which"), v1.OutcomeDone)
			case 3:
				y.sendLate()
			case 4:
				y.replace(rapid.IntRange(0, 100).Draw(t, "which"))
			default:
				y.ask()
			}
			y.pass()
		}
		y.sendLate()
		for range 3 * (len(y.asked) + 1) {
			y.end(0, v1.OutcomeDone)
			c.add(time.Second)
			y.pass()
		}
		for key := range y.asked {
			r := y.demand.requestOf(key.run, key.task)
			if r != nil && r.state == waiting && y.scheduler.eval.isPossible(r.class, y.fleet) {
				t.Fatalf("%s waits for ever: %s", key.task, r.waitsFor())
			}
			if r != nil && r.state == waiting {
				seen["impossible"]++
			}
		}
		for _, run := range []string{"a1", "a2", "b1", "c1"} {
			y.Forget(run)
		}
		checkEmpty(t, y.Queue)
	})
	t.Logf("in all %v", seen)
	for _, what := range []string{"placed", "reserved", "left with some room"} {
		if seen[what] == 0 {
			t.Errorf("nothing was ever %s: the test tests less than it says", what)
		}
	}
}

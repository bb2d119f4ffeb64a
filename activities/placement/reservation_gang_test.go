package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// fourCores returns nodes with four cores each.
func fourCores(k int) []*v1.NodeSnapshot {
	var nodes []*v1.NodeSnapshot
	for i := range k {
		nodes = append(nodes, aNode(fmt.Sprintf("n%d", i)))
	}
	return nodes
}

// reservedFor returns the nodes that are reserved for a run, sorted.
func (y *yard) reservedFor(runID string) []string {
	var nodes []string
	for _, res := range y.scheduler.reservations.held {
		if res.request.run.ID == runID {
			nodes = append(nodes, res.node.name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// endOldest ends the attempt of a stream that has run for longest, and lets some time pass.
func (y *yard) endOldest(runID string, next *int) {
	y.t.Helper()
	task := fmt.Sprintf("each[%d]", *next)
	*next++
	if y.on[claimKey{runID, task, 1}] != "" {
		y.end(runID, task)
	}
	y.wait(200 * time.Millisecond)
}

// TestGangStartsInAStreamOfSmallTasks checks that a gang of whole nodes starts although one-core tasks of other owners always wait
// for each core, and that it would not start without reservations.
func TestGangStartsInAStreamOfSmallTasks(t *testing.T) {
	for _, noReservations := range []bool{false, true} {
		y := newYard(t, Options{NoReservations: noReservations}, fourCores(8)...)
		y.ask("ada", "stream", tasks("each", 600)...)
		y.ask("bob", "g", gangOf("train", 4, 0, withCores(4))...)
		next := 0
		for range 200 {
			y.endOldest("stream", &next)
		}
		if isPlaced := len(y.nodesOf("g", "train")) == 4; isPlaced == noReservations {
			t.Errorf("without reservations %v, the gang is placed: %v (%s)", noReservations, isPlaced, y.why["train[0]"])
		}
		if held := y.reservedFor("g"); len(held) > 0 {
			t.Errorf("%v are still reserved", held)
		}
	}
}

// TestGangsDoNotBlockEachOther checks that three gangs start under load, one after another, if each needs most of the fleet.
func TestGangsDoNotBlockEachOther(t *testing.T) {
	y := newYard(t, Options{}, fourCores(5)...)
	y.ask("ada", "stream", tasks("each", 300)...)
	runs := []string{"g0", "g1", "g2"}
	for i, run := range runs {
		y.ask(fmt.Sprint("owner", i), run, gangOf("train", 3+i%2, 1, withCores(4))...)
	}
	placed := map[string]bool{}
	for next := 0; next < 400; {
		y.endOldest("stream", &next)
		for i, run := range runs {
			size := 3 + i%2
			if n := len(y.reservedFor(run)); n > 0 && n != size {
				t.Fatalf("gang %s of %d has %d reservations", run, size, n)
			}
			on := y.nodesOf(run, "train")
			if len(on) > 0 && len(on) != size {
				t.Fatalf("gang %s of %d is on %v", run, size, on)
			}
			if len(on) > 0 && next%7 == 0 {
				for i := range size {
					y.end(run, fmt.Sprintf("train[%d]", i))
				}
			}
			placed[run] = placed[run] || len(on) > 0
		}
	}
	if len(placed) != 3 || !placed["g0"] || !placed["g1"] || !placed["g2"] {
		t.Errorf("these gangs were placed: %v", placed)
	}
	if waiting, _ := y.Counts(); waiting > 0 {
		t.Errorf("%d requests still wait", waiting)
	}
}

// TestGangIsExpectedWhenItsLastNodeIs checks that a gang reserves the nodes where it can start soonest, that its time is that of the
// last one, and that what ends before may start on the others.
func TestGangIsExpectedWhenItsLastNodeIs(t *testing.T) {
	y := newYard(t, Options{}, fourCores(4)...)
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	for i, limit := range []int{10, 5, 40, 20} {
		y.ask("", fmt.Sprint("old", i), aTask("old", withCores(4), withLimit(minutes(limit)), pinned(fmt.Sprint("n", i))))
	}
	y.ask("", "g", gangOf("train", 3, 0, withCores(3), withPriority(1))...)
	y.wait(2 * time.Second)
	if want := []string{"n0", "n1", "n3"}; !slices.Equal(y.reservedFor("g"), want) {
		t.Fatalf("reserved on %v, want %v", y.reservedFor("g"), want)
	}
	if want := "reserved on n0, n1, n3 for 3 members, expected at 22:33:20 UTC: room for 0 of 3 members: 0 of 4 nodes have 3 cores free: "; !strings.HasPrefix(y.why["train[2]"], want) {
		t.Errorf("train[2] waits because %q, want %q...", y.why["train[2]"], want)
	}
	y.wait(minutes(4))
	y.end("old1", "old")
	y.ask("", "late", aTask("late", withCores(4), withLimit(minutes(17))))
	y.ask("", "short", aTask("short", withCores(3), withLimit(minutes(10))))
	y.ask("", "beside", aTask("beside", withCores(1)))
	if want := "reserved for gang train of run g, expected at 22:33:20 UTC"; !strings.Contains(y.why["late"], want) {
		t.Errorf("late waits because %q, want %q", y.why["late"], want)
	}
	if y.on[claimKey{"short", "short", 1}] != "n1" || y.on[claimKey{"beside", "beside", 1}] != "n1" {
		t.Errorf("placed %v: both could have been on n1", y.on)
	}
	y.end("short", "short")
	y.end("old0", "old")
	y.end("old3", "old")
	if on := y.nodesOf("g", "train"); !slices.Equal(on, []string{"n0", "n1", "n3"}) {
		t.Errorf("the gang is on %v: %s", on, y.why["train[0]"])
	}
}

// TestUnknownEndOnOneNodeAllowsNoBackfillOnOthers checks that no time is expected for a gang if it is unknown for one of its nodes.
func TestUnknownEndOnOneNodeAllowsNoBackfillOnOthers(t *testing.T) {
	y := newYard(t, Options{}, fourCores(2)...)
	y.ask("", "old0", aTask("old", withCores(4), pinned("n0"), withLimit(time.Hour)))
	y.ask("", "old1", aTask("old", withCores(4), pinned("n1")))
	y.ask("", "g", gangOf("train", 2, 1, withCores(4), withPriority(1))...)
	y.wait(2 * time.Second)
	if want := "reserved on n0, n1 for 2 members, expected at an unknown time: "; !strings.HasPrefix(y.why["train[0]"], want) {
		t.Errorf("train[0] waits because %q, want %q", y.why["train[0]"], want)
	}
	y.end("old0", "old")
	y.ask("", "short", aTask("short", withLimit(time.Second)))
	if node := y.on[claimKey{"short", "short", 1}]; node != "" {
		t.Errorf("short was placed on %s", node)
	}
}

// TestGangSharesItsNodes checks that a gang reserves as many nodes as its members need, with several members on each.
func TestGangSharesItsNodes(t *testing.T) {
	y := newYard(t, Options{}, fourCores(4)...)
	for i := range 4 {
		y.ask("", fmt.Sprint("old", i), aTask("old", withCores(4), withLimit(time.Duration(i+1)*time.Hour), pinned(fmt.Sprint("n", i))))
	}
	y.ask("", "g", gangOf("train", 5, 3)...)
	y.wait(2 * time.Second)
	if want := []string{"n0", "n1"}; !slices.Equal(y.reservedFor("g"), want) {
		t.Errorf("reserved on %v, want %v", y.reservedFor("g"), want)
	}
	for _, res := range y.scheduler.reservations.held {
		if left := map[string]int64{"n0": 1000, "n1": 2000}[res.node.name]; res.spare[coreUnit] != left {
			t.Errorf("%s has %d thousandths of cores to spare, want %d", res.node.name, res.spare[coreUnit], left)
		}
	}
}

// TestGangTakesNoMoreThanTheSpareRoom checks that the members of a gang together take no more of a reserved node than is left beside
// the reservation, and that a gang that does not fit takes nothing of that.
func TestGangTakesNoMoreThanTheSpareRoom(t *testing.T) {
	y := newYard(t, Options{}, aNode("a", func(n *v1.NodeSnapshot) { n.Cpu.Cores, n.MaxParallel = 8, 16 }))
	y.ask("", "old", aTask("long", withCores(5), withLimit(10*time.Minute)))
	y.ask("", "wide", aTask("wide", withCores(6), withPriority(1)))
	y.wait(2 * time.Second)
	y.ask("", "three", gangOf("three", 3, 0)...)
	if on := y.nodesOf("three", "three"); len(on) > 0 {
		t.Errorf("three members are on %v, and the reservation leaves two cores", on)
	}
	y.ask("", "two", gangOf("two", 2, 0)...)
	if on := y.nodesOf("two", "two"); len(on) != 2 {
		t.Errorf("two members are on %v: %s", on, y.why["two[0]"])
	}
}

// TestMoreUrgentRequestTakesNodeOfGang checks that a gang loses all reservations when a more urgent request needs one of its nodes
// and the others are not enough, and gets them again.
func TestMoreUrgentRequestTakesNodeOfGang(t *testing.T) {
	y := newYard(t, Options{}, fourCores(3)...)
	y.ask("", "old", tasks("each", 12)...)
	y.ask("", "g", gangOf("train", 3, 1, withCores(4))...)
	y.wait(2 * time.Second)
	if n := len(y.reservedFor("g")); n != 3 {
		t.Fatalf("%d nodes are reserved", n)
	}
	y.ask("", "wide", aTask("wide", withCores(4), withPriority(1)))
	y.wait(2 * time.Second)
	if g, wide := y.reservedFor("g"), y.reservedFor("wide"); len(g) != 0 || len(wide) != 1 {
		t.Errorf("%v are reserved for the gang, %v for the more urgent task", g, wide)
	}
	y.Forget("wide")
	y.wait(2 * time.Second)
	if n := len(y.reservedFor("g")); n != 3 {
		t.Errorf("%d nodes are reserved for the gang when it is the most urgent again", n)
	}
	release(y.Queue, "g", "train[2]", 1)
	if n := len(y.reservedFor("g")); n != 0 {
		t.Errorf("%d nodes are reserved for an incomplete gang", n)
	}
	for _, n := range y.fleet.listed {
		if n.machine.reservation != nil {
			t.Errorf("%s is still reserved", n.name)
		}
	}
}

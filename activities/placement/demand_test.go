package placement

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// orderRecorder records the calls of a demand to its watcher.
type orderRecorder struct {
	active int
	firsts []string // former first requests, by task
}

func (o *orderRecorder) noteActive(*requestClass) { o.active++ }

func (o *orderRecorder) noteFirstChanged(_ *requestClass, was *request) {
	if was == nil {
		o.firsts = append(o.firsts, "")
	} else {
		o.firsts = append(o.firsts, was.task)
	}
}

// addAll adds requests of run r to a demand without a fleet.
func addAll(d *demand, c *clock, reqs ...*historyv1.TaskRequest) {
	for _, req := range reqs {
		d.add(d.runOf(Run{ID: "r"}), req, c.now())
	}
}

func TestDemandOrdersRequestsOfAClassAndReportsNewFirstRequests(t *testing.T) {
	c, o := newClock(), &orderRecorder{}
	d := newDemand(newRequestClasses(), newAccounts(time.Hour, false), o)
	addAll(d, c, aTask("low"), aTask("high", withPriority(2)), aTask("middle", withPriority(1)), aTask("other", withMemory(1)))
	if len(d.classes.active) != 2 || d.waitingCount() != 4 || o.active != 2 {
		t.Errorf("%d active classes, %d reported, %d requests", len(d.classes.active), o.active, d.waitingCount())
	}
	d.unqueue(d.requestOf("r", "middle"))
	s := d.requestOf("r", "low").class
	var order []string
	for range 2 {
		order = append(order, d.takeFirst(s.lines[0]).task)
	}
	if !slices.Equal(order, []string{"high", "low"}) {
		t.Errorf("taken in the order %v", order)
	}
	if want := []string{"", "low", "high", "", "high", "high", "low"}; !slices.Equal(o.firsts, want) {
		t.Errorf("former first requests %q, want %q", o.firsts, want)
	}
	if d.retire(s); len(d.classes.active) != 1 || d.waitingCount() != 1 {
		t.Errorf("%d active classes, %d requests", len(d.classes.active), d.waitingCount())
	}
}

func TestDelayedRequestIsAdmittedWhenItsDelayIsOver(t *testing.T) {
	c := newClock()
	d := newDemand(newRequestClasses(), newAccounts(time.Hour, false), &orderRecorder{})
	addAll(d, c, aTask("t", refusedTimes(2)))
	if at, ok := d.nextDeadline(); !ok || at.Sub(c.now()) != firstDelay || len(d.classes.active) != 0 || d.waitingCount() != 1 {
		t.Errorf("deadline %v, %v; %d active classes", at, ok, len(d.classes.active))
	}
	if d.admit(c.now()); len(d.classes.active) != 0 {
		t.Error("admitted at once")
	}
	c.add(firstDelay)
	if d.admit(c.now()); len(d.classes.active) != 1 || !d.hasNews {
		t.Error("not admitted after its delay")
	}
	if _, ok := d.nextDeadline(); ok {
		t.Error("the delay is still a deadline")
	}
}

func TestCollectReportsARequestOnce(t *testing.T) {
	c := newClock()
	d := newDemand(newRequestClasses(), newAccounts(time.Hour, false), &orderRecorder{})
	addAll(d, c, aTask("b"), aTask("a"))
	owner := d.runOf(Run{ID: "r"})
	for _, task := range []string{"a", "b", "a"} {
		d.report(d.requestOf("r", task))
	}
	if ids := d.runsToReport(); !slices.Equal(ids, []string{"r"}) {
		t.Errorf("runs %v have reports", ids)
	}
	if placed, stuck := d.collect(owner); len(placed) != 0 || len(stuck) != 2 || stuck[0].Task != "b" {
		t.Errorf("collected %v and %v, want b before a", placed, stuck)
	}
	if placed, stuck := d.collect(owner); len(placed)+len(stuck)+len(d.runsToReport()) != 0 {
		t.Errorf("collected twice: %v and %v", placed, stuck)
	}
}

func TestTimeoutRunsOnlyWhileTheClassIsImpossible(t *testing.T) {
	c := newClock()
	d := newDemand(newRequestClasses(), newAccounts(time.Hour, false), &orderRecorder{})
	limited := func(r *historyv1.TaskRequest) { r.PlacementTimeout = durationpb.New(time.Minute) }
	addAll(d, c, aTask("t", limited), aTask("unlimited"))
	s := d.requestOf("r", "t").class
	if d.timeouts.restart(s, c.now()); len(d.timeouts.classes) != 0 {
		t.Error("a time-out runs for a possible class")
	}
	s.notice.impossible = true
	d.timeouts.restart(s, c.now())
	c.add(59 * time.Second)
	if due := d.timeouts.due(c.now()); len(due) != 0 {
		t.Error("due too early")
	}
	d.timeouts.expecting = true
	c.add(time.Second)
	if due := d.timeouts.due(c.now()); len(due) != 0 {
		t.Error("due although nodes are expected")
	}
	d.timeouts.expecting = false
	c.add(time.Minute)
	if due := d.timeouts.due(c.now()); len(due) != 1 || len(s.expired(c.now())) != 1 || s.expired(c.now())[0].task != "t" {
		t.Errorf("due are %v", due)
	}
	d.giveUp(d.requestOf("r", "t"), "no node")
	if _, stuck := d.collect(d.runOf(Run{ID: "r"})); len(stuck) != 1 || !stuck[0].GivenUp || stuck[0].Reason != "no node" || d.waitingCount() != 1 {
		t.Errorf("collected %v, %d wait", stuck, d.waitingCount())
	}
}

func TestIdleClassesAreForgottenOldestFirst(t *testing.T) {
	classes := newRequestClasses()
	for i := range 2*mostIdle + 1 {
		s := classes.classOf("r", aTask("t", withMemory(int32(i))))
		classes.activate(s)
		classes.retire(s)
	}
	if len(classes.byKey) != mostIdle {
		t.Errorf("%d idle classes are kept, want %d", len(classes.byKey), mostIdle)
	}
	_, oldest := specKeys("r", aTask("t", withMemory(0)))
	_, newest := specKeys("r", aTask("t", withMemory(2*mostIdle)))
	if classes.byKey[oldest] != nil || classes.byKey[newest] == nil {
		t.Error("the newest class was forgotten instead of the oldest")
	}
}

package run

import (
	"errors"
	"slices"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/options"
)

// fakeQueue stands for the placement queue, and for the components that a placer needs.
type fakeQueue struct {
	err    error
	answer *v1.PlaceResponse // to the next call
	calls  []*v1.PlaceRequest
	units  map[int]*unit
	left   []*unit
	placed []int
	nodes  []string
}

func (q *fakeQueue) try(_, _ string, result any, args ...any) error {
	q.calls = append(q.calls, args[0].(*v1.PlaceRequest))
	if q.err == nil && q.answer != nil {
		answer := result.(*v1.PlaceResponse)
		answer.Epoch, answer.Number, answer.Assigned, answer.Waiting = q.answer.Epoch, q.answer.Number, q.answer.Assigned, q.answer.Waiting
	}
	return q.err
}

func (q *fakeQueue) leave(u *unit)       { q.left = append(q.left, u) }
func (q *fakeQueue) unitOf(i int) *unit  { return q.units[i] }
func (q *fakeQueue) addNode(node string) { q.nodes = append(q.nodes, node) }

func (q *fakeQueue) removeMember(u *unit, i int) {
	u.members = slices.DeleteFunc(u.members, func(m int) bool { return m == i })
}

// fakePlacerUnits adapts a fakeQueue, whose field has the name of this method.
type fakePlacerUnits struct{ *fakeQueue }

func (u fakePlacerUnits) placed(lead int) { u.fakeQueue.placed = append(u.fakeQueue.placed, lead) }

// newPlacer returns a placer whose run has two tasks that need nodes, "a" and "b".
func newPlacer(t *testing.T) (*placer, *fakeQueue, *fakeOutbox) {
	t.Helper()
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"a": {Type: v1.TypeShell}, "b": {Type: v1.TypeShell}}))
	q, o := &fakeQueue{units: map[int]*unit{}}, &fakeOutbox{}
	p := &placer{execution: x, admitter: fakePlacerUnits{q}, outbox: o, store: q, view: q}
	for _, i := range apply(x, x.core.Start()).Place {
		x.records.At(i).Queue(x.now())
		q.units[i] = &unit{lead: i, members: []int{i}, claim: x.core.Task(i).Claim}
		p.request(q.units[i])
	}
	return p, q, o
}

// requested returns the tasks of the newest call.
func (q *fakeQueue) requested() (names []string) {
	for _, r := range q.calls[len(q.calls)-1].GetRequests() {
		names = append(names, r.GetTask())
	}
	return names
}

// A granted placement waits for its attempt, and the task is assigned. An answer that comes twice counts once.
func TestPlacementIsAppliedOnce(t *testing.T) {
	t.Parallel()
	p, q, _ := newPlacer(t)
	granted := &v1.Assignment{Task: "a", Claim: q.units[0].claim, Node: "node-1", Queue: "queue-1"}
	q.answer = &v1.PlaceResponse{Epoch: "one", Number: 7, Assigned: []*v1.Assignment{granted, granted}}
	p.place()
	if got := q.requested(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("requested %v", got)
	}
	a, ok := p.nextAssignment()
	if !ok || a.unit != q.units[0] || a.node != "node-1" || p.hasAssignments() || !slices.Equal(q.nodes, []string{"node-1"}) {
		t.Errorf("the assignment is %+v, nodes %v", a, q.nodes)
	}
	if events := p.takeEvents(); len(events) != 1 || events[0] != (dag.Placed{Task: 0, Claim: q.units[0].claim, Node: "node-1"}) {
		t.Errorf("events: %v", events)
	}
	if p.waitsForNode(0, q.units[0].claim) || !p.waitsForNode(1, q.units[1].claim) || !p.awaiting {
		t.Error("only b still waits")
	}
	p.release(0, q.units[0].claim, v1.OutcomeDone)
	p.place()
	if last := q.calls[1]; last.GetEpoch() != "one" || last.GetAcknowledged() != 7 || len(last.GetRequests()) > 0 || len(last.GetReleased()) != 1 {
		t.Errorf("the next call is %v", last)
	}
}

// A unit that no longer wants a node is withdrawn from the queue, and a late answer for it is ignored.
func TestWithdrawnRequestGetsNoNode(t *testing.T) {
	t.Parallel()
	p, q, _ := newPlacer(t)
	p.place()
	p.unrequest(q.units[0])
	p.unrequest(q.units[0])
	p.applyAnswer(&v1.PlaceResponse{Assigned: []*v1.Assignment{{Task: "a", Claim: q.units[0].claim, Node: "node-1"}}})
	if p.hasAssignments() || p.hasEvents() || len(p.released) != 1 {
		t.Errorf("assignments %v, released %v", p.assignments, p.released)
	}
}

// A queue that has been replaced is sent everything that waits, once.
func TestNewQueueIsSentEverything(t *testing.T) {
	t.Parallel()
	p, q, _ := newPlacer(t)
	q.answer = &v1.PlaceResponse{Epoch: "one"}
	p.place()
	q.answer = &v1.PlaceResponse{Epoch: "two"}
	p.release(0, 99, "")
	p.place()
	if got := q.requested(); len(q.calls) != 3 || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%d calls, the last for %v", len(q.calls), got)
	}
}

// While placement does not answer, the run waits and then asks for the same again.
func TestPlacementThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	p, q, o := newPlacer(t)
	q.err = errors.New("no leader")
	p.release(0, 99, v1.OutcomeDone)
	p.place()
	p.place()
	if len(q.calls) != 1 || len(o.timers) != 1 || o.timers[0].after != options.PlacementPause || !p.owesReleases() {
		t.Fatalf("%d calls, %d timers", len(q.calls), len(o.timers))
	}
	q.err, q.answer = nil, &v1.PlaceResponse{Epoch: "one"}
	o.timers[0].fire()
	if got := q.requested(); !slices.Equal(got, []string{"a", "b"}) || len(q.calls[1].GetReleased()) != 1 || p.owesReleases() {
		t.Errorf("requested %v, released %v", got, q.calls[1].GetReleased())
	}
}

// A draining run requests nothing and ignores answers, but releases what it holds.
func TestDrainingRunOnlyReleases(t *testing.T) {
	t.Parallel()
	p, q, _ := newPlacer(t)
	p.draining = true
	p.place()
	if len(q.calls) > 0 {
		t.Fatal("a draining run asks for nodes")
	}
	p.release(1, q.units[1].claim, "")
	q.answer = &v1.PlaceResponse{Assigned: []*v1.Assignment{{Task: "a", Claim: q.units[0].claim, Node: "node-1"}}}
	p.place()
	if len(q.calls) != 1 || len(q.requested()) > 0 || p.hasAssignments() || p.hasEvents() {
		t.Errorf("requested %v, assignments %v", q.requested(), p.assignments)
	}
	p.draining = false
	p.place()
	if got := q.requested(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("afterwards requested %v", got)
	}
}

// A task that placement has given up on leaves the queue with the reason. One that waits shows the reason.
func TestWaitsAndGivingUp(t *testing.T) {
	t.Parallel()
	p, q, _ := newPlacer(t)
	p.applyAnswer(&v1.PlaceResponse{Waiting: []*v1.Waiting{
		{Task: "a", Claim: q.units[0].claim, Reason: "every node is full"},
		{Task: "b", Claim: q.units[1].claim, Reason: "no node has a GPU", GivenUp: true},
	}})
	if text := p.status.Text(0); text != "every node is full" {
		t.Errorf("a shows %q", text)
	}
	up, ok := p.takeEvents()[0].(dag.GaveUp)
	if !ok || up.Task != 1 || up.Error != "no node has a GPU" || len(q.left) != 1 || p.count != 1 {
		t.Errorf("%+v; %d units have left", up, len(q.left))
	}
}

// A task that has a node and is stopped before its attempt ends at once, and its node is released.
func TestAssignedTaskIsStopped(t *testing.T) {
	t.Parallel()
	p, q, _ := newPlacer(t)
	if p.stop(0) {
		t.Fatal("a task without a node is stopped")
	}
	p.applyAnswer(&v1.PlaceResponse{Assigned: []*v1.Assignment{{Task: "a", Claim: q.units[0].claim, Node: "node-1"}}})
	p.takeEvents()
	if !p.stop(0) || p.hasAssignments() || len(p.released) != 1 || len(q.left) != 1 {
		t.Errorf("assignments %v, released %v, %d have left", p.assignments, p.released, len(q.left))
	}
	if end, ok := p.takeEvents()[0].(dag.Ended); !ok || end.State != v1.TaskCancelled {
		t.Errorf("the task ends with %+v", end)
	}
}

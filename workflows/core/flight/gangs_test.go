package flight

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// aGang returns a definition with a task of n members that is retried once.
func aGang(n int) *v1.Definition {
	def := tasks("train")
	train := def.Tasks["train"]
	train.Gang, train.Parallel = &v1.Gang{Size: int32(n), PerNode: 1}, structpb.NewNumberValue(float64(n))
	train.Retry = &v1.RetryPolicy{MaxRetries: proto.Int32(1), BackoffMs: proto.Int32(1)}
	return def
}

// gangPlay is a run with one gang. Each member has a node of its own.
type gangPlay struct{ *play }

// beginGang returns a run whose gang waits for the places that its nodes reserve.
func beginGang(t *testing.T, n int) gangPlay {
	p := gangPlay{begin(t, aGang(n))}
	p.round()
	p.place()
	return p
}

// place gives each member that waits a node of its own.
func (p gangPlay) place() {
	p.admit()
	req, res := p.PlaceRequest(false), &historyv1.PlaceResponse{Epoch: "one", Number: 7}
	for i, q := range req.GetRequests() {
		node := fmt.Sprintf("n%d", i)
		res.Assigned = append(res.Assigned, &historyv1.Assignment{Task: q.GetTask(), Claim: q.GetClaim(), Node: node, Queue: "q"})
	}
	p.fly(p.PlaceAnswered(req, res, false))
	p.round()
}

func (p gangPlay) member(rank int) *Unit {
	first, _ := p.core.Instances(0)
	return p.UnitOf(first + rank)
}

// reserve answers for the node of a member, which refuses with a reason unless that is empty.
func (p gangPlay) reserve(rank int, refused string) {
	p.fly(p.Reserved(p.member(rank), &historyv1.ReserveResponse{
		Refused: refused, Host: fmt.Sprintf("10.0.0.%d", rank), Port: int32(4000 * (1 - min(rank, 1))),
	}, true))
	p.round()
}

// start reserves all places and dispatches all members.
func (p gangPlay) start() {
	p.t.Helper()
	for rank := range p.members() {
		p.reserve(rank, "")
	}
	n := 0
	for u := p.NextDispatch(); u != nil; u = p.NextDispatch() {
		p.Dispatched(u)
		n++
	}
	if n != p.members() {
		p.t.Fatalf("%d members are dispatched", n)
	}
}

func (p gangPlay) members() int { return int(p.core.Definition(0).GetGang().GetSize()) }

// ends ends the attempt of a member.
func (p gangPlay) ends(rank int, state, reason string, code int32) {
	p.fly(p.Answered(p.member(rank), Answer{
		Kind:     Answered,
		Response: &historyv1.ExecuteResponse{State: state, Reason: reason, Node: "n", Result: &v1.TaskResult{ExitCode: code}},
		Beat:     &historyv1.ExecuteProgress{},
	}, start))
	p.round()
}

// states returns the states of the members, each with its reason and attempt.
func (p gangPlay) states() string {
	first, count := p.core.Instances(0)
	var all []string
	for i := first; i < first+count; i++ {
		rec := p.core.Task(i)
		all = append(all, strings.TrimRight(fmt.Sprintf("%s/%s/%d", rec.State, rec.Reason, rec.Attempt), " "))
	}
	return strings.Join(all, " ")
}

// TestGangStartsWhenAllPlacesAreReserved checks that no member is dispatched before every node has reserved the place of its
// member, and that all then know each other.
func TestGangStartsWhenAllPlacesAreReserved(t *testing.T) {
	t.Parallel()
	p := beginGang(t, 3)
	for rank := range 2 {
		if p.reserve(rank, ""); p.NextDispatch() != nil || p.IsQuiet() {
			t.Fatalf("a member is dispatched after %d of 3 places", rank+1)
		}
	}
	p.reserve(2, "")
	var gangs []*historyv1.Gang
	for u := p.NextDispatch(); u != nil; u = p.NextDispatch() {
		gangs = append(gangs, u.GangOf())
		p.Dispatched(u)
	}
	want := &historyv1.Gang{Hosts: []string{"10.0.0.0", "10.0.0.1", "10.0.0.2"}, MasterPort: 4000}
	if len(gangs) != 3 || slices.ContainsFunc(gangs, func(g *historyv1.Gang) bool { return !proto.Equal(g, want) }) {
		t.Errorf("the members get %v", gangs)
	}
	for rank := range 3 {
		if p.core.Task(0).State != v1.TaskRunning {
			t.Errorf("the task is %s with %d members left", p.core.Task(0).State, 3-rank)
		}
		p.ends(rank, v1.TaskCompleted, "", 0)
	}
	if got := p.states(); got != "completed//0 completed//0 completed//0" || p.core.Task(0).State != v1.TaskCompleted {
		t.Errorf("the members are %s", got)
	}
	if p.UnitOf(1) != nil || len(p.gangs) > 0 || !p.IsQuiet() {
		t.Error("something of the gang is left")
	}
}

// TestGangWithoutAPlaceIsPlacedAnew checks that all members wait again, with no attempt spent, if one node has no room or does not
// answer, and that the other nodes need not keep the places.
func TestGangWithoutAPlaceIsPlacedAnew(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		p := beginGang(t, 3)
		p.reserve(0, "")
		p.said = nil
		if answers {
			p.reserve(1, v1.ReasonNoRoom)
		} else {
			p.fly(p.Reserved(p.member(1), nil, false))
			p.round()
		}
		if got := p.states(); strings.Count(got, "queued/") != 3 || strings.Count(got, "/0") != 3 {
			t.Fatalf("the members are %s", got)
		}
		undone := 0
		for _, said := range p.said {
			if strings.HasPrefix(said, "Reserve") {
				undone++
			}
		}
		if undone != 3 {
			t.Errorf("%d nodes learn that the places are not needed: %v", undone, p.said)
		}
		if late := p.State.Reserved(&Unit{Phase: Gone}, &historyv1.ReserveResponse{}, true); len(late) > 0 {
			t.Errorf("a late answer has effects: %v", late)
		}
		if p.place(); p.NextDispatch() != nil {
			t.Error("a member is dispatched at once")
		}
		p.start()
	}
}

// TestMemberThatFailsEndsItsGang checks that the failure of one member ends the others, and that all are retried together, and are
// dead letters together once their retries are used up.
func TestMemberThatFailsEndsItsGang(t *testing.T) {
	t.Parallel()
	p := beginGang(t, 3)
	p.start()
	p.ends(0, v1.TaskCompleted, "", 0)
	p.said = nil
	p.ends(1, v1.TaskFailed, "", 7)
	if !slices.Contains(p.said, "Cancel train[2]") {
		t.Fatalf("the last member is not ended: %v", p.said)
	}
	if got := p.states(); strings.Contains(got, "queued") {
		t.Fatalf("a member waits while another runs: %s", got)
	}
	p.ends(2, v1.TaskCancelled, v1.ReasonCancelled, -1)
	if got, want := p.states(), "queued/gang/1 queued//1 queued/gang/1"; got != want {
		t.Fatalf("the members are %s, want %s", got, want)
	}
	if text := p.core.Task(p.firstMember()).Error; text != "it ends with train[1], which failed: exit code 7" {
		t.Errorf("the first member says %q", text)
	}
	first, _ := p.core.Instances(0)
	for rank := range 3 {
		p.round(dag.BackoffOver{Task: first + rank, Claim: p.core.Task(first + rank).Claim})
	}
	p.place()
	p.start()
	p.ends(2, v1.TaskFailed, "", 8)
	p.ends(0, v1.TaskCancelled, v1.ReasonCancelled, -1)
	p.ends(1, v1.TaskCompleted, "", 0)
	if got, want := p.states(), "dead_letter/gang/1 dead_letter/gang/1 dead_letter/failed/1"; got != want {
		t.Errorf("the members are %s, want %s", got, want)
	}
	if p.core.Task(0).State != v1.TaskFailed {
		t.Errorf("the task is %s", p.core.Task(0).State)
	}
}

func (p gangPlay) firstMember() int {
	first, _ := p.core.Instances(0)
	return first
}

// TestMovedMemberMovesItsGang checks that a member that its node hands back after the start of the others moves all of them.
func TestMovedMemberMovesItsGang(t *testing.T) {
	t.Parallel()
	p := beginGang(t, 2)
	p.start()
	p.ends(1, v1.AttemptMoved, v1.ReasonDraining, -1)
	p.ends(0, v1.TaskCancelled, v1.ReasonCancelled, -1)
	if got, want := p.states(), "queued/gang/0 queued/draining/0"; got != want {
		t.Errorf("the members are %s, want %s", got, want)
	}
}

// TestCancelledGangEndsInEveryPhase checks that a cancellation ends all members, wherever they are.
func TestCancelledGangEndsInEveryPhase(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(gangPlay){
		"reserving": func(p gangPlay) { p.reserve(0, "") },
		"placed": func(p gangPlay) {
			p.reserve(0, "")
			p.reserve(1, "")
		},
		"running": func(p gangPlay) { p.start() },
		"one has completed": func(p gangPlay) {
			p.start()
			p.ends(0, v1.TaskCompleted, "", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := beginGang(t, 2)
			before(p)
			p.round(dag.Cancel{})
			for rank := range 2 {
				if u := p.member(rank); u != nil && u.Phase == Attended {
					p.ends(rank, v1.TaskCancelled, v1.ReasonCancelled, -1)
				}
			}
			p.round()
			if got := p.states(); strings.Contains(got, "assigned") || !strings.Contains(got, "cancelled") || len(p.gangs) > 0 {
				t.Errorf("the members are %s", got)
			}
		})
	}
}

// TestGangContinuesInTheNextExecution checks that detached members and those that have ended are attended again together.
func TestGangContinuesInTheNextExecution(t *testing.T) {
	t.Parallel()
	p := beginGang(t, 3)
	p.start()
	p.ends(0, v1.TaskCompleted, "", 0)
	for rank := 1; rank < 3; rank++ {
		p.ends(rank, v1.AttemptDetached, "", 0)
	}
	if !p.IsQuiet() {
		t.Fatal("the run cannot continue as new")
	}
	c := p.saveAll()
	next := gangPlay{prepare(t, aGang(3))}
	var records []dag.Record
	for i := range p.core.Len() {
		records = append(records, dag.RecordOf(c.Tasks[p.core.Name(i)]))
	}
	graph, err := dag.NewGraph(next.Input.GetDefinition(), nil)
	if err != nil {
		t.Fatal(err)
	}
	next.State = New(next.Config, dag.Restore(graph, records, dag.WithRunState(c), dag.WithExpansion(0, 0, 3, false)), NewRecords(nil))
	for i := range next.core.Len() {
		next.fly(next.RestoreTask(i, c.GetTasks()[next.core.Name(i)], start))
	}
	next.said = nil
	next.fly(next.Reattach(false))
	for rank := range 3 {
		if want := fmt.Sprintf("Reattach train[%d]", rank); !slices.Contains(next.said, want) {
			t.Errorf("%s is missing in %v", want, next.said)
		}
	}
	next.ends(1, v1.TaskFailed, "", 7)
	next.ends(0, v1.TaskCompleted, "", 0)
	next.ends(2, v1.TaskCancelled, v1.ReasonCancelled, -1)
	if got, want := next.states(), "queued/gang/1 queued//1 queued/gang/1"; got != want {
		t.Errorf("the members are %s, want %s", got, want)
	}
}

// TestLeasesOfGangsStayShort checks that all members soon learn that one is lost.
func TestLeasesOfGangsStayShort(t *testing.T) {
	t.Parallel()
	if p := beginGang(t, 2); p.MaxLease(p.member(0)) != 0 {
		t.Error("the lease of a member may grow")
	}
}

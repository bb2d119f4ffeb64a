package run

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// fakeEnds records the ends of tasks that run on no node.
type fakeEnds struct{ ended []flight.End }

// listen makes a run report the ends of its tasks.
func (f *fakeEnds) listen(x *execution) {
	x.fly = func(effects []flight.Effect) {
		for _, effect := range effects {
			switch e := effect.(type) {
			case flight.Raise:
				x.raise(e.Event)
			case flight.Settle:
				f.ended = append(f.ended, e.End)
			}
		}
	}
}

// newApprovals returns the approvals of a run whose only task waits for approval.
func newApprovals(t *testing.T, spec map[string]any) (*approvals, *fakeEnds, *fakeOutbox, *fakeQuestions) {
	t.Helper()
	fields, err := structpb.NewStruct(spec)
	if err != nil {
		t.Fatal(err)
	}
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"ship": {Type: v1.TypeApproval, Spec: fields}}))
	apply(x, x.core.Start())
	f, o, e := &fakeEnds{}, &fakeOutbox{}, &fakeQuestions{}
	f.listen(x)
	ap := &approvals{execution: x, evaluator: e, outbox: o, waiting: map[int]*approval{}}
	ap.ask(x.flight.Track(0))
	apply(x, x.core.Apply(ap.takeEvents()...))
	return ap, f, o, e
}

// A task that needs two approvals takes them of two people, and its output names both.
func TestTwoPeopleApprove(t *testing.T) {
	t.Parallel()
	ap, f, _, _ := newApprovals(t, map[string]any{"message": "ship it?", "approvals": 2})
	ann, bob := &v1.TaskCommand{Task: "ship", By: "ann"}, &v1.TaskCommand{Task: "ship", By: "bob", Reason: "looks good"}
	if err := ap.mayApprove(0, ann); err != nil || !ap.waits(0) || ap.count() != 1 {
		t.Fatalf("ann may not approve: %v", err)
	}
	ap.approve(0, ann)
	if text := ap.status.Text(0); len(f.ended) > 0 || text != "ship it? (1 of 2 have approved)" {
		t.Errorf("the task shows %q; it has ended: %v", text, f.ended)
	}
	if err := ap.mayApprove(0, ann); err == nil || !strings.Contains(err.Error(), "another person must approve it") {
		t.Errorf("ann approves twice: %v", err)
	}
	ap.approve(0, bob)
	if len(f.ended) != 1 || f.ended[0].Ended.State != v1.TaskCompleted || ap.waits(0) {
		t.Fatalf("the task ends with %+v", f.ended)
	}
	output := f.ended[0].Response.GetResult().GetOutput().GetFields()
	if output["by"].GetStringValue() != "bob" || len(output["approvals"].GetListValue().GetValues()) != 2 {
		t.Errorf("the output is %v", output)
	}
}

// A decision counts only of a person who has one of the roles that the task names.
func TestApprovalChecksTheRole(t *testing.T) {
	t.Parallel()
	ap, _, _, _ := newApprovals(t, map[string]any{"roles": []any{"admin"}})
	by := func(role string) *v1.TaskCommand {
		return &v1.TaskCommand{By: "ann", Decision: &v1.Decision{By: "ann", Role: role}}
	}
	if got := refused(ap.mayReject(0, by("user"))); !strings.HasPrefix(got, names.NotAllowedError) || !strings.HasSuffix(got, "ann has the role user") {
		t.Errorf("a user decides: %s", got)
	}
	if err := ap.mayReject(0, by("admin")); err != nil {
		t.Errorf("an admin does not decide: %v", err)
	}
}

// The definition decides how an approval ends that comes too late, and a decision stops the time limit.
func TestApprovalTimesOut(t *testing.T) {
	t.Parallel()
	for onTimeout, state := range map[string]string{v1.OnTimeoutApprove: v1.TaskCompleted, v1.OnTimeoutReject: v1.TaskRejected} {
		_, f, o, _ := newApprovals(t, map[string]any{"timeout": "2h", "onTimeout": onTimeout})
		if len(o.timers) != 1 || o.timers[0].after != 2*time.Hour {
			t.Fatalf("timers: %+v", o.timers)
		}
		o.timers[0].fire()
		if len(f.ended) != 1 || f.ended[0].Ended.State != state || !o.timers[0].stopped {
			t.Errorf("%s: the task ends with %+v", onTimeout, f.ended)
		}
		o.timers[0].fire()
		if len(f.ended) != 1 {
			t.Errorf("%s: the task ends twice", onTimeout)
		}
	}
}

// The next execution knows who has approved, and how long it still has to wait.
func TestApprovalsAreCarried(t *testing.T) {
	t.Parallel()
	ap, _, _, _ := newApprovals(t, map[string]any{"message": "ship it?", "approvals": 2, "timeout": "2h"})
	ap.approve(0, &v1.TaskCommand{By: "ann"})
	carried := &v1.RunState{Tasks: map[string]*v1.TaskState{"ship": {Task: &v1.Task{Error: ap.status.Text(0)}}}}
	ap.saveTasks(carried)
	o := &fakeOutbox{}
	next := &approvals{execution: ap.execution, outbox: o, waiting: map[int]*approval{}}
	next.now = func() time.Time { return startTime.Add(30 * time.Minute) }
	next.restoreTask(0, carried.GetTasks()["ship"])
	a := next.waiting[0]
	if a == nil || len(a.given) != 1 || a.text() != "ship it? (1 of 2 have approved)" || next.flight.UnitOf(0) == nil {
		t.Fatalf("restored as %+v", a)
	}
	if len(o.timers) != 1 || o.timers[0].after != 90*time.Minute {
		t.Errorf("timers: %+v", o.timers)
	}
}

// The message is rendered first. If that fails, the task fails instead of asking people for something unclear.
func TestApprovalMessageIsRendered(t *testing.T) {
	t.Parallel()
	ap, f, _, e := newApprovals(t, map[string]any{"message": "ship ${{ input.version }}?"})
	if len(e.asked) != 1 || e.asked[0].kind != asksTemplate || ap.waits(0) {
		t.Fatalf("asked %v", e.asked)
	}
	e.asked[0].answered(&v1.ConditionAnswer{Error: "no such input"})
	if len(f.ended) != 1 || f.ended[0].Ended.State != v1.TaskFailed {
		t.Error("the task does not fail")
	}
	ap.flight.Track(0)
	rendered, _ := structpb.NewStruct(map[string]any{"message": "ship 1.2?"})
	e.asked[0].answered(&v1.ConditionAnswer{Rendered: rendered})
	if !ap.waits(0) || ap.waiting[0].message != "ship 1.2?" {
		t.Errorf("waits: %v", ap.waiting)
	}
}

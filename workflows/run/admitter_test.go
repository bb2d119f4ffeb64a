package run

import (
	"slices"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// fakeStarts stands for everything that starts, or keeps, what the admitter lets through.
type fakeStarts struct {
	older     bool // attempts of the previous generation run
	approvals []*unit
	runs      []*unit
	locking   []*unit
	freed     []*unit
	requested []*unit
	withdrawn []*unit
	released  []int
	assigned  []assignment
	failed    []int
}

func (f *fakeStarts) isPending() bool { return f.older }
func (f *fakeStarts) text() string {
	if f.older {
		return "waits for the old attempt of a on node-1 to end"
	}
	return ""
}
func (f *fakeStarts) ask(u *unit)                                  { f.approvals = append(f.approvals, u) }
func (f *fakeStarts) start(u *unit)                                { f.runs = append(f.runs, u) }
func (f *fakeStarts) failBeforeStart(i int, _ *v1.ConditionAnswer) { f.failed = append(f.failed, i) }
func (f *fakeStarts) acquire(u *unit)                              { f.locking = append(f.locking, u) }
func (f *fakeStarts) restoreUnit(*unit)                            {}
func (f *fakeStarts) free(u *unit)                                 { f.freed = append(f.freed, u) }
func (f *fakeStarts) waits(u *unit) bool {
	return slices.Contains(f.locking, u) && !slices.Contains(f.freed, u)
}
func (f *fakeStarts) request(u *unit)                  { f.requested = append(f.requested, u) }
func (f *fakeStarts) unrequest(u *unit)                { f.withdrawn = append(f.withdrawn, u) }
func (f *fakeStarts) release(i int, _ int32, _ string) { f.released = append(f.released, i) }

func (f *fakeStarts) waitsForNode(lead int, _ int32) bool {
	return slices.ContainsFunc(f.requested, func(u *unit) bool { return u.lead == lead && !slices.Contains(f.withdrawn, u) })
}

func (f *fakeStarts) takeAssignment(u *unit) (assignment, bool) {
	k := slices.IndexFunc(f.assigned, func(a assignment) bool { return a.unit == u })
	if k < 0 {
		return assignment{}, false
	}
	a := f.assigned[k]
	f.assigned = slices.Delete(f.assigned, k, k+1)
	return a, true
}

// newAdmitter returns the admitter of a run whose tasks want to start.
func newAdmitter(t *testing.T, def *v1.Definition) (*admitter, *fakeStarts, *fakeQuestions) {
	t.Helper()
	x, f, e := newExecution(t, def), &fakeStarts{}, &fakeQuestions{}
	ad := &admitter{
		execution: x, units: map[int]*unit{}, abandoned: f, approvals: f, childRuns: f, ends: f, evaluator: e, locks: f, placer: f,
	}
	ad.open()
	for _, i := range apply(x, x.core.Start()).Place {
		ad.want(i)
	}
	return ad, f, e
}

// What a unit waits for after its admission depends on its task.
func TestAdmittedUnitsGoWhereTheyBelong(t *testing.T) {
	t.Parallel()
	ad, f, _ := newAdmitter(t, tasks(map[string]*v1.TaskDefinition{
		"ask":    {Type: v1.TypeApproval},
		"build":  {Type: v1.TypeShell},
		"call":   {Type: v1.TypeRun},
		"deploy": {Type: v1.TypeShell, Mutex: "cluster"},
	}))
	ad.admit()
	for name, units := range map[string][]*unit{"ask": f.approvals, "build": f.requested, "call": f.runs, "deploy": f.locking} {
		if len(units) != 1 || ad.core.Name(units[0].lead) != name || ad.unitOf(units[0].lead) != units[0] {
			t.Errorf("%s: %v", name, units)
		}
	}
	ad.enter(f.locking[0])
	if len(f.requested) != 2 {
		t.Error("a unit with its lock asks for no node")
	}
	ad.leave(f.locking[0])
	if len(f.freed) != 1 || ad.unitOf(f.freed[0].lead) != nil {
		t.Error("a unit that has left keeps its lock")
	}
}

// Nothing starts while the run drains, while attempts of the previous generation run, or while a person has paused the run.
func TestNothingIsAdmittedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stop, resume func(*admitter, *fakeStarts)
		why          string
	}{
		"draining":  {func(ad *admitter, _ *fakeStarts) { ad.draining = true }, func(ad *admitter, _ *fakeStarts) { ad.draining = false }, ""},
		"abandoned": {func(_ *admitter, f *fakeStarts) { f.older = true }, func(_ *admitter, f *fakeStarts) { f.older = false }, "waits for the old attempt of a on node-1 to end"},
		"paused":    {func(ad *admitter, _ *fakeStarts) { ad.pause() }, func(ad *admitter, _ *fakeStarts) { ad.resume() }, "the run is paused"},
	} {
		ad, f, _ := newAdmitter(t, tasks(map[string]*v1.TaskDefinition{"build": {Type: v1.TypeShell}}))
		test.stop(ad, f)
		if ad.admit(); len(f.requested) > 0 {
			t.Errorf("%s: a task starts", name)
		}
		if why := ad.waitReason(0); test.why != "" && why != test.why {
			t.Errorf("%s: the task waits because %q, want %q", name, why, test.why)
		}
		test.resume(ad, f)
		if ad.admit(); len(f.requested) != 1 {
			t.Errorf("%s: nothing starts afterwards", name)
		}
	}
}

// A unit that is set aside gives back its node or its request, and its task queues again under a new claim.
func TestUnitsThatAreSetAsideQueueAgain(t *testing.T) {
	t.Parallel()
	for _, assigned := range []bool{false, true} {
		ad, f, _ := newAdmitter(t, tasks(map[string]*v1.TaskDefinition{"build": {Type: v1.TypeShell}}))
		ad.admit()
		u := ad.unitOf(0)
		if assigned {
			f.withdrawn = append(f.withdrawn, u) // it is no longer queued
			f.assigned = append(f.assigned, assignment{task: 0, claim: u.claim, unit: u, node: "node-1"})
			apply(ad.execution, ad.core.Apply(dag.Placed{Task: 0, Claim: u.claim, Node: "node-1"}))
		}
		ad.setAllAside(v1.ReasonPaused, "the run is paused")
		if ad.unitOf(0) != nil || assigned != (len(f.released) == 1) {
			t.Errorf("assigned %v: unit %v, released %v", assigned, ad.unitOf(0), f.released)
		}
		d := apply(ad.execution, ad.core.Apply(ad.takeEvents()...))
		if rec := ad.core.Task(0); !slices.Equal(d.Place, []int{0}) || rec.Claim == u.claim || rec.Attempt != 0 {
			t.Errorf("assigned %v: the core places %v; the task is %+v", assigned, d.Place, rec)
		}
	}
}

// The name of a lock may be an expression. If it cannot be evaluated, the task fails instead of running without its lock.
func TestLockNamesAreEvaluatedFirst(t *testing.T) {
	t.Parallel()
	ad, f, e := newAdmitter(t, tasks(map[string]*v1.TaskDefinition{"deploy": {Type: v1.TypeShell, Mutex: "${{ input.cluster }}"}}))
	if ad.admit(); len(e.asked) != 1 || e.asked[0].kind != asksLock || len(f.locking) > 0 {
		t.Fatalf("asked %v, locks %v", e.asked, f.locking)
	}
	e.asked[0].answered(&v1.ConditionAnswer{Error: "no such input"})
	if len(f.failed) != 1 {
		t.Error("the task does not fail")
	}
	e.asked[0].answered(&v1.ConditionAnswer{Text: "eu"})
	if ad.admit(); len(f.locking) != 1 || f.locking[0].lock.Name != ad.lockOf(0).Name || ad.records.Of(0).Lock != "eu" {
		t.Errorf("the locks are %v", f.locking)
	}
}

// The next execution holds the same tasks, shows who holds them, and is paused if this one is.
func TestHeldTasksAreCarried(t *testing.T) {
	t.Parallel()
	def := tasks(map[string]*v1.TaskDefinition{"build": {Type: v1.TypeShell}, "test": {Type: v1.TypeShell}})
	ad, f, _ := newAdmitter(t, def)
	ad.restore(&v1.RunState{Held: []string{"build", "gone"}, HeldBy: map[string]string{"build": "by ann"}})
	if ad.admit(); len(f.requested) != 1 || ad.core.Name(f.requested[0].lead) != "test" || ad.records.Of(0).HeldBy != "by ann" {
		t.Errorf("%d tasks start; the first is held %q", len(f.requested), ad.records.Of(0).HeldBy)
	}
	ad.restore(&v1.RunState{Paused: true})
	var carried v1.RunState
	if ad.save(&carried); !carried.GetPaused() {
		t.Error("the next execution is not paused")
	}
}

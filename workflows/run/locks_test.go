package run

import (
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/limits"
)

// A task that waits for a lock while its run prepares to continue as new requests the lock again, even if the run does not
// continue as new after all.
func TestLocksAreAskedForAgain(t *testing.T) {
	t.Parallel()
	env := newTestEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		def := &v1.Definition{Name: "locked", Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shell", Mutex: "m"}}}
		r := newRun(ctx, nil, limits.Run{}.WithDefaults())
		r.in, r.admitter.queue = &v1.RunInput{Definition: def}, admission.New(0)
		var err error
		if r.graph, err = dag.NewGraph(def, nil); err != nil {
			return err
		}
		r.handover.beginNew()
		asks := func(d dag.Decisions) bool {
			r.locks.requests = nil
			for _, i := range d.Place {
				r.admitter.want(i)
			}
			r.admitter.admit()
			return len(r.locks.requests) == 1 && r.locks.requests[0].GetAcquire() != nil
		}
		if !asks(r.core.Start()) {
			t.Fatal("the lock is not asked for")
		}
		first := r.locks.requests[0].GetAcquire().GetClaim()
		if !r.admitter.takeBackRequests() || len(r.locks.wanted) > 0 {
			t.Error("the request is not taken back")
		}
		if !slices.ContainsFunc(r.locks.requests, func(q *v1.LockRequest) bool { return q.GetFree().GetClaim() == first }) {
			t.Errorf("the lock is not told: %v", r.locks.requests)
		}
		if !asks(r.core.Apply(r.takeEvents()...)) {
			t.Error("the lock is not asked for again")
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

// fakeLockQueue stands for everything that locks need. It takes requests, lets units in and shows the state of the run.
type fakeLockQueue struct {
	err     error
	sent    [][]*v1.LockRequest
	entered []*unit
	left    []*unit
	state   string
}

func (q *fakeLockQueue) mustNow(_, _ string, _ any, args ...any) error {
	if q.err == nil {
		q.sent = append(q.sent, args[0].(*v1.LockRequests).GetRequests())
	}
	return q.err
}

func (q *fakeLockQueue) enter(u *unit)         { q.entered = append(q.entered, u) }
func (q *fakeLockQueue) leave(u *unit)         { q.left = append(q.left, u) }
func (q *fakeLockQueue) setState(state string) { q.state = state }

// newLocks returns the locks of a run whose only task needs the lock "db".
func newLocks(t *testing.T, limit *v1.RunConcurrency) (*locks, *fakeLockQueue, *unit) {
	t.Helper()
	def := tasks(map[string]*v1.TaskDefinition{"migrate": {Type: v1.TypeShell, Mutex: "db"}})
	def.Concurrency = limit
	x, q := newExecution(t, def), &fakeLockQueue{}
	apply(x, x.core.Start())
	l := &locks{execution: x, admitter: q, store: q, view: q, wanted: map[string]*unit{}, held: map[string]*unit{}}
	return l, q, &unit{members: []int{0}, claim: x.core.Task(0).Claim, lock: x.lockOf(0)}
}

// A unit enters when its lock is granted, once, and gives the lock back when it leaves.
func TestUnitEntersWithItsLock(t *testing.T) {
	t.Parallel()
	l, q, u := newLocks(t, nil)
	l.acquire(u)
	if l.send(); len(q.sent) != 1 || l.hasRequests() || !l.waits(u) {
		t.Fatalf("%d calls, waits: %v", len(q.sent), l.waits(u))
	}
	asked := q.sent[0][0]
	if a := asked.GetAcquire(); a.GetHolder() != "run" || a.GetExecution() != "first" || a.GetAsker() != "original" || a.GetLimit() != 1 {
		t.Errorf("the request is %v", a)
	}
	claim := asked.GetAcquire().GetClaim()
	l.granted(&v1.Granted{Lock: asked.GetLock(), Claim: claim, Asker: "original", Holders: []string{"other"}})
	if text := l.status.Text(0); !strings.Contains(text, "db") || !strings.Contains(text, "other") || len(q.entered) > 0 {
		t.Errorf("the task shows %q; %d units have entered", text, len(q.entered))
	}
	granted := &v1.Granted{Lock: asked.GetLock(), Claim: claim, Asker: "original"}
	l.granted(granted)
	l.granted(granted) // answers may arrive twice
	if len(q.entered) != 1 || q.entered[0] != u || l.waits(u) || l.status.Text(0) != "" || l.isEmpty() {
		t.Errorf("%d units have entered, waits: %v, the task shows %q", len(q.entered), l.waits(u), l.status.Text(0))
	}
	l.free(u)
	l.free(u)
	if l.send(); len(q.sent) != 2 || len(q.sent[1]) != 1 || q.sent[1][0].GetFree().GetClaim() != claim {
		t.Errorf("calls: %v", q.sent)
	}
}

// A grant that answers an earlier execution is ignored. A lock that the run no longer needs is given back.
func TestGrantsThatNothingWaitsFor(t *testing.T) {
	t.Parallel()
	l, q, u := newLocks(t, nil)
	l.acquire(u)
	claim := l.lockClaim(u)
	l.granted(&v1.Granted{Lock: "task:db", Claim: claim, Asker: "an earlier one"})
	if len(q.entered) > 0 || !l.waits(u) {
		t.Error("the unit has entered for another execution")
	}
	l.requests = nil
	l.granted(&v1.Granted{Lock: "task:db", Claim: "gone", Asker: "original"})
	if len(l.requests) != 1 || l.requests[0].GetFree().GetClaim() != "gone" {
		t.Errorf("requests: %v", l.requests)
	}
}

// TestUnitThatWouldWaitForEverFails checks that a unit names the locks held above its run, and fails if one is never granted.
func TestUnitThatWouldWaitForEverFails(t *testing.T) {
	t.Parallel()
	l, q, u := newLocks(t, &v1.RunConcurrency{MaxRuns: 1})
	above := &v1.HeldLock{Lock: u.lock.Name, Holder: "outer-1", Claim: "deploy#1"}
	l.in.HeldLocks = []*v1.HeldLock{{Lock: "task:other", Holder: "outer-1", Claim: "x#1"}, above}
	l.acquire(u)
	if got := l.requests[0].GetAcquire().GetAbove(); len(got) != 1 || got[0] != above {
		t.Errorf("above are %v", got)
	}
	l.granted(&v1.Granted{Lock: u.lock.Name, Claim: l.lockClaim(u), Asker: "original", Holders: []string{"deploy of outer-1"}, Refused: true, Deadlock: true})
	e, ok := l.takeEvents()[0].(dag.GaveUp)
	if !ok || e.Reason != v1.ReasonDeadlock || !strings.Contains(e.Error, "the lock db is held by deploy of outer-1 until") {
		t.Errorf("%+v", e)
	}
	if len(q.entered) != 0 || len(q.left) != 1 || l.waits(u) {
		t.Errorf("%d units have entered, %d have left", len(q.entered), len(q.left))
	}
}

// TestRunsBelowLearnOfHeldLocks checks that a run hands down the locks above it, its run slot, and the lock of the unit that starts
// a run.
func TestRunsBelowLearnOfHeldLocks(t *testing.T) {
	t.Parallel()
	l, _, u := newLocks(t, &v1.RunConcurrency{MaxRuns: 1})
	l.in.HeldLocks = []*v1.HeldLock{{Lock: "task:m", Holder: "outer-1", Claim: "x#1"}}
	held := func(u *unit) (all []string) {
		for _, h := range l.heldBy(u) {
			all = append(all, h.GetLock()+" "+h.GetHolder()+" "+h.GetClaim())
		}
		return all
	}
	if got := held(nil); !slices.Equal(got, []string{"task:m outer-1 x#1"}) {
		t.Errorf("without a slot: %q", got)
	}
	l.restoreSlot()
	if got, want := held(u), []string{"task:m outer-1 x#1", l.slotLock() + " run run", u.lock.Name + " run " + l.lockClaim(u)}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := held(nil); len(got) != 2 {
		t.Errorf("for a partition: %q", got)
	}
}

// Requests of an interrupted call stay in front of later ones.
func TestInterruptedRequestsAreSentFirst(t *testing.T) {
	t.Parallel()
	l, q, u := newLocks(t, nil)
	q.err = errInterrupted
	l.acquire(u)
	l.send()
	l.release("task:other", "c")
	q.err = nil
	l.send()
	if len(q.sent) != 1 || len(q.sent[0]) != 2 || q.sent[0][0].GetAcquire() == nil || q.sent[0][1].GetFree() == nil {
		t.Errorf("calls: %v", q.sent)
	}
}

// The strategy of a workflow decides what happens to a run that gets no run slot.
func TestRunSlot(t *testing.T) {
	t.Parallel()
	if l, _, _ := newLocks(t, nil); l.askSlot() {
		t.Error("a run without a limit needs a slot")
	}
	for _, test := range []struct{ strategy, state, text string }{
		{v1.StrategyFail, v1.RunRejected, "open already: a, b"},
		{v1.StrategySkip, v1.RunCancelled, "open already: a, b"},
		{v1.StrategyReplace, v1.RunCancelled, "replaced by a, b"},
		{"", v1.RunCancelled, "replaced by a, b"},
	} {
		l, q, _ := newLocks(t, &v1.RunConcurrency{MaxRuns: 1, Strategy: test.strategy})
		if !l.askSlot() || !l.hasRequests() {
			t.Fatalf("%q: no slot is requested", test.strategy)
		}
		l.granted(&v1.Granted{Claim: slotClaim, Holders: []string{"a", "b"}})
		if q.state != v1.RunPending || l.hasSlot() {
			t.Errorf("%q: the waiting run is %q", test.strategy, q.state)
		}
		if text := l.status.Whole().GetRun().GetError(); text != "the run waits for its place: concurrency.maxRuns is 1, held by a, b" {
			t.Errorf("%q: the waiting run shows %q", test.strategy, text)
		}
		l.granted(&v1.Granted{Claim: slotClaim, Holders: []string{"a", "b"}, Refused: true})
		end, ok := l.takeEvents()[0].(dag.Abort)
		if !ok || end.State != test.state || !strings.HasPrefix(end.Error, test.text) {
			t.Errorf("%q: the run ends with %+v", test.strategy, end)
		}
	}
	l, _, _ := newLocks(t, &v1.RunConcurrency{MaxRuns: 1})
	l.askSlot()
	l.granted(&v1.Granted{Claim: slotClaim, Holders: []string{"a"}, Refused: true, Deadlock: true})
	if end, ok := l.takeEvents()[0].(dag.Abort); !ok || end.State != v1.RunFailed || end.Reason != v1.ReasonDeadlock ||
		!strings.Contains(end.Error, "the place of a run of work is held by a until") {
		t.Errorf("a run below the holder ends with %+v", end)
	}
	l.granted(&v1.Granted{Claim: slotClaim, Holders: []string{"a"}})
	if l.granted(&v1.Granted{Claim: slotClaim}); !l.hasSlot() || l.hasEvents() || l.status.Whole().GetRun().GetError() != "" {
		t.Errorf("the granted slot is not held, or the run still waits: %q", l.status.Whole().GetRun().GetError())
	}
}

package flight

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/proto/prototest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/limits"
	"switchyard/workflows/phrase"
)

// start is the time of the tests.
var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// play is a run whose effects the test reads as words.
type play struct {
	*State
	t      *testing.T
	events []dag.Event
	said   []string
	last   []Effect
}

// begin returns a run whose tasks want to start.
func begin(t *testing.T, def *v1.Definition) *play {
	t.Helper()
	p := prepare(t, def)
	p.decide(p.core.Start())
	return p
}

// prepare returns a run that has not begun.
func prepare(t *testing.T, def *v1.Definition) *play {
	t.Helper()
	def.Name = "work"
	graph, err := dag.NewGraph(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	core := dag.New(graph)
	return &play{t: t, State: New(Config{
		Input: &historyv1.RunInput{Definition: def}, RunID: "run", Chain: "chain", Self: "run", First: "first", Original: "original",
		Limits: limits.Run{}.WithDefaults(), HeartbeatTimeout: 15 * time.Second,
	}, core, NewRecords(nil))}
}

// TestPauseStopsTheClockOfFinally checks that a pause does not count for the time-out, over executions too.
func TestPauseStopsTheClockOfFinally(t *testing.T) {
	t.Parallel()
	def := tasks("build")
	def.Finally, def.FinallyTimeout = tasks("tidy").GetTasks(), "60m"
	p := begin(t, def)
	p.round(dag.CancelTask{Task: 0})
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	due := func(minutes int) (what string) {
		for _, e := range p.Due(Timer{kind: finallyTimer}, at(minutes)) {
			switch e := e.(type) {
			case After:
				what += "after " + e.Delay.String()
			case Raise:
				what += reflect.TypeOf(e.Event).Name()
			}
		}
		return what
	}
	p.StartFinally(start)
	p.Pause()
	p.PauseFinally(at(10))
	p.Resume()
	p.PauseFinally(at(20))
	if got := due(60); got != "after 10m0s" {
		t.Errorf("after a pause of 10 minutes, the time-out has %q", got)
	}
	p.Pause()
	p.PauseFinally(at(65))
	c := p.saveAll()
	next := prepare(t, def)
	next.State.Pause()
	next.finallyDue, next.finallyStoppedAt = c.GetFinally().GetDeadlineAt().AsTime(), c.GetFinally().GetStoppedAt().AsTime()
	p = next
	p.StartFinally(at(66))
	if got := due(70); got != "" {
		t.Errorf("in a pause, the time-out has %q", got)
	}
	p.Resume()
	if effects := p.PauseFinally(at(100)); len(effects) != 1 || effects[0].(After).Delay != 5*time.Minute {
		t.Errorf("after the pause: %v", effects)
	}
	if got := due(105); got != "ExpireFinally" {
		t.Errorf("when all its time has passed: %q", got)
	}
}

// tasks returns a definition with tasks of type shell, or of the type that follows a colon.
func tasks(names ...string) *v1.Definition {
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{}}
	for _, name := range names {
		name, taskType, _ := strings.Cut(name, ":")
		if taskType == "" {
			taskType = v1.TypeShell
		}
		def.Tasks[name] = &v1.TaskDefinition{Type: taskType}
	}
	return def
}

// locked returns a definition with one task, which needs the lock "db".
func locked() *v1.Definition {
	def := tasks("migrate")
	def.Tasks["migrate"].Mutex = "db"
	return def
}

// placed returns a run whose tasks have the node "n".
func placed(t *testing.T, def *v1.Definition) *play {
	t.Helper()
	p := begin(t, def)
	p.admit()
	p.assign()
	p.round()
	return p
}

// attended returns a run whose units are dispatched.
func attended(t *testing.T, def *v1.Definition) *play {
	t.Helper()
	p := placed(t, def)
	for u := p.NextDispatch(); u != nil; u = p.NextDispatch() {
		p.Dispatched(u)
	}
	return p
}

// saveAll returns the state of the run for the next execution.
func (p *play) saveAll() *historyv1.RunState {
	c := &historyv1.RunState{Tasks: map[string]*historyv1.TaskState{}}
	p.core.Save(c)
	p.Save(c)
	return c
}

func (p *play) decide(d dag.Decisions) {
	for _, i := range d.Changed {
		p.records.Changed(i, p.core.Task(i), false, false)
	}
	for _, i := range d.Withdraw {
		p.fly(p.Withdraw(i))
	}
	for _, i := range d.Stop {
		effects, _ := p.Stop(i)
		p.fly(effects)
	}
	for _, i := range d.Expand {
		p.events = append(p.events, dag.Expanded{Task: i, Count: int(p.core.Definition(i).GetParallel().GetNumberValue())})
	}
	for _, i := range d.Place {
		p.records.At(i).Queue(start)
		p.fly(p.Want(i))
	}
}

// round gives the core what has been raised, and events of the test.
func (p *play) round(events ...dag.Event) {
	events = append(p.events, events...)
	p.events = nil
	p.decide(p.core.Apply(events...))
}

func (p *play) admit() { p.fly(p.Admit(start)) }

// assign gives every waiting unit the node "n".
func (p *play) assign() {
	req, res := p.PlaceRequest(false), &historyv1.PlaceResponse{Epoch: "one", Number: 7}
	for _, q := range req.GetRequests() {
		res.Assigned = append(res.Assigned, &historyv1.Assignment{Task: q.GetTask(), Claim: q.GetClaim(), Node: "n", Queue: "q"})
	}
	p.fly(p.PlaceAnswered(req, res, false))
}

// fly collects effects.
func (p *play) fly(effects []Effect) {
	p.last = effects
	for _, effect := range effects {
		p.say(effect)
	}
}

// say adds what an effect does to the words of the play.
func (p *play) say(effect Effect) {
	word := strings.TrimPrefix(reflect.TypeOf(effect).Name(), "Show")
	name := func(i int) string { return " " + p.core.Name(i) }
	switch e := effect.(type) {
	case Raise:
		p.events = append(p.events, e.Event)
		switch e := e.Event.(type) {
		case dag.Ended:
			word = strings.TrimSpace(e.State+" "+e.Reason) + name(e.Task)
		case dag.GaveUp:
			word = "gaveUp " + e.Reason + name(e.Task)
		case dag.Placed:
			word = "placed" + name(e.Task)
		case dag.Running:
			word = "running" + name(e.Task)
		case dag.Reused:
			word = "reused"
		case dag.Abort:
			word = "abort " + e.State + ": " + e.Error
		case dag.Expire:
			word = "expire" + name(e.Task) + ": " + e.Error
		}
	case LogCommand:
		word = e.Event + name(e.Task)
	case StartTimer:
		word = "After " + e.Delay.String()
	case ShowLate:
		of := " run"
		if e.Task != eventlog.WholeRun {
			of = name(e.Task)
		}
		word = fmt.Sprintf("late%s since %s: %s", of, e.Since.Format("15:04"), e.Text)
	case StartRun:
		word += name(e.Unit.Lead)
	case Cancel:
		word += name(e.Unit.Lead)
	case Find:
		word += name(e.Unit.Lead)
	case Reserve:
		if word += name(e.Unit.Lead); e.Undo {
			word += " no more"
		}
	case Reattach:
		word += name(e.Unit.Lead)
		if e.Stop {
			word += " to stop"
		}
	case After:
		word = "After " + e.Delay.String()
	case Settle:
		word = "Settle " + e.End.Ended.State
		p.events = append(p.events, e.End.Ended)
	case AwaitRecord:
		word += fmt.Sprint(name(e.Unit.Lead), " ", e.Retried)
	case Show:
		if word = e.Event + name(e.Task); e.Event == "" {
			if p.records.Of(e.Task).Wait == "" {
				return
			}
			word = "Wait" + word + ": " + p.records.Of(e.Task).Wait
		}
	case UseNode:
		return
	}
	p.said = append(p.said, word)
}

// heard checks what the play has said since it was last asked.
func (p *play) heard(when string, want ...string) {
	p.t.Helper()
	if !slices.Equal(p.said, want) {
		p.t.Errorf("%s: %q, want %q", when, p.said, want)
	}
	p.said = nil
}

// asked returns the tasks of the next call of the placement queue, and of its releases.
func (p *play) asked() (text string) {
	req := p.PlaceRequest(false)
	for _, q := range req.GetRequests() {
		text += fmt.Sprintf(" +%s#%d", q.GetTask(), q.GetClaim())
	}
	for _, ref := range req.GetReleased() {
		text += fmt.Sprintf(" -%s#%d%s", ref.GetTask(), ref.GetClaim(), ref.GetOutcome())
	}
	return strings.TrimSpace(text)
}

// lockCalls returns the lock requests of the next call.
func (p *play) lockCalls() (text string) {
	for _, q := range p.TakeLockRequests() {
		if a := q.GetAcquire(); a != nil {
			text += fmt.Sprintf(" +%s %s", q.GetLock(), a.GetClaim())
		} else {
			text += fmt.Sprintf(" -%s %s", q.GetLock(), q.GetFree().GetClaim())
		}
	}
	return strings.TrimSpace(text)
}

// What a unit waits for after its admission depends on its task.
func TestAdmittedUnitsGoWhereTheyBelong(t *testing.T) {
	t.Parallel()
	def := tasks("ask:approval", "build", "call:run", "deploy")
	def.Tasks["deploy"].Mutex = "cluster"
	p := begin(t, def)
	p.admit()
	p.heard("admitted", "paused ask", "placed ask", "placed call", "StartRun call")
	if got, locks := p.asked(), p.lockCalls(); got != "+build#1" || locks != "+task:cluster deploy#1" {
		t.Errorf("nodes %q, locks %q", got, locks)
	}
	p.fly(p.Granted(&historyv1.Granted{Lock: "task:cluster", Claim: "deploy#1", Asker: "original"}, start))
	if got := p.asked(); got != "+build#1 +deploy#1" {
		t.Errorf("with its lock: nodes %q", got)
	}
	p = begin(t, tasks("call:run"))
	p.SetChildren(p.Limits.Children)
	if p.admit(); p.UnitOf(0) != nil || !strings.Contains(p.WaitText(0), "open child workflows") {
		t.Errorf("beyond the limit of child workflows it waits because %q", p.WaitText(0))
	}
}

// A unit that is set aside gives back its node or its request, and its task queues again under a new claim.
func TestUnitsThatAreSetAsideQueueAgain(t *testing.T) {
	t.Parallel()
	for phase, test := range map[string]struct {
		def   *v1.Definition
		to    func(*play)
		said  []string
		calls string
	}{
		"waiting": {tasks("build"), (*play).admit, []string{"placed build", "moved paused build"}, "-build#1 "},
		"placed": {tasks("build"), func(p *play) { p.admit(); p.assign(); p.round(); p.said = nil },
			[]string{"moved paused build"}, "-build#1 "},
		"locking": {locked(), (*play).admit, []string{"placed migrate", "moved paused migrate"}, " +task:db migrate#1 -task:db migrate#1"},
	} {
		p := begin(t, test.def)
		test.to(p)
		p.Pause()
		p.fly(p.SetAllAside(v1.ReasonPaused, "the run is paused"))
		p.heard(phase, test.said...)
		if got := p.asked() + " " + p.lockCalls(); p.UnitOf(0) != nil || got != test.calls {
			t.Errorf("%s: calls %q", phase, got)
		}
		p.round()
		p.admit()
		if why := p.WaitText(0); p.UnitOf(0) != nil || why != "the run is paused" {
			t.Errorf("%s: it waits because %q", phase, why)
		}
		p.Resume()
		if p.admit(); p.UnitOf(0) == nil || p.UnitOf(0).Claim != 2 || p.core.Task(0).Attempt != 0 {
			t.Errorf("%s: the unit is %+v", phase, p.UnitOf(0))
		}
	}
}

// A task that is withdrawn leaves its batch, and the rest of the batch continues. Without their lead, the others queue again.
func TestWithdrawnMembersOfABatch(t *testing.T) {
	t.Parallel()
	def := tasks("each")
	def.Tasks["each"].Parallel, def.Tasks["each"].Batch = structpb.NewNumberValue(3), structpb.NewNumberValue(3)
	def.Tasks["each"].MaxFailures = 3
	p := begin(t, def)
	p.round()
	p.admit()
	p.round(dag.CancelTask{Task: 2})
	if u := p.UnitOf(1); u == nil || len(u.Members) != 2 || p.UnitOf(2) != nil {
		t.Fatalf("the unit is %+v", u)
	}
	p.round(dag.CancelTask{Task: 1})
	p.heard("without the lead", "placed each[2]", "moved each[2]")
	if got := p.asked(); got != "-each[0]#1" {
		t.Errorf("calls %q", got)
	}
}

// A batch that gets its node in the round in which its lead is withdrawn continues there without its lead.
func TestPlacedBatchContinuesWithoutItsLead(t *testing.T) {
	t.Parallel()
	def := tasks("each")
	def.Tasks["each"].Parallel, def.Tasks["each"].Batch = structpb.NewNumberValue(2), structpb.NewNumberValue(2)
	def.Tasks["each"].MaxFailures = 2
	p := begin(t, def)
	p.round()
	p.admit()
	p.events = append(p.events, dag.CancelTask{Task: 1})
	p.assign()
	p.round()
	u := p.NextDispatch()
	if u == nil || !slices.Equal(u.Members, []int{2}) || p.UnitOf(2) != u || p.UnitOf(1) != nil {
		t.Fatalf("the unit is %+v", u)
	}
	p.Dispatched(u)
	if _, ok := p.Stop(2); !ok {
		t.Error("its attempt cannot be stopped")
	}
}

// The name of a lock may be an expression. If it cannot be evaluated, the task fails instead of running without its lock.
func TestLockNamesAreEvaluatedFirst(t *testing.T) {
	t.Parallel()
	def := tasks("deploy")
	def.Tasks["deploy"].Semaphore = &v1.Semaphore{Name: "${{ input.cluster }}", Limit: 3}
	p := begin(t, def)
	p.admit()
	p.heard("wanted", "NameLock")
	p.fly(p.LockNamed(0, &historyv1.ConditionAnswer{Error: "no such input"}))
	p.heard("unknown", "placed deploy", "Settle failed")
	p.events = nil
	p.fly(p.LockNamed(0, &historyv1.ConditionAnswer{Text: "eu"}))
	p.admit()
	if limit := p.lockRequests[0].GetAcquire().GetLimit(); p.lockCalls() != "+task:eu deploy#1" || p.records.Of(0).Lock != "eu" || limit != 3 {
		t.Errorf("the lock is %q, with the limit %d", p.records.Of(0).Lock, limit)
	}
}

// The next execution holds the same tasks, shows who holds them, and is paused if this one is.
func TestHeldTasksAreCarried(t *testing.T) {
	t.Parallel()
	p := begin(t, tasks("build", "test"))
	p.fly(p.Restore(&historyv1.RunState{Held: []string{"build", "gone"}, HeldBy: map[string]string{"build": "by ann"}}))
	if p.admit(); p.asked() != "+test#1" || p.records.Of(0).HeldBy != "by ann" {
		t.Errorf("asked %q; the first is held %q", p.asked(), p.records.Of(0).HeldBy)
	}
	p.Restore(&historyv1.RunState{Paused: true})
	if !p.saveAll().GetPaused() {
		t.Error("the pause is not carried")
	}
	p.fly(p.Unhold(0))
	p.Resume()
	p.admit()
	p.fly(p.Hold(0, "by bob"))
	p.heard("held again", "placed build", "moved held build")
}

// Requests that the next execution might not repeat are taken back, and locks are requested again.
func TestRequestsAreTakenBack(t *testing.T) {
	t.Parallel()
	p := begin(t, tasks("free"))
	p.admit()
	if effects, left := p.TakeBackRequests(); left || effects != nil {
		t.Error("a request that the next execution repeats is taken back")
	}
	for name, change := range map[string]func(*v1.Definition){
		"a batch":     func(def *v1.Definition) { def.Tasks["a"].Batch = structpb.NewNumberValue(3) },
		"concurrency": func(def *v1.Definition) { def.Tasks["a"].Concurrency = 3 },
		"maxParallel": func(def *v1.Definition) { def.MaxParallel = 3 },
	} {
		def := tasks("a")
		change(def)
		p := begin(t, def)
		p.admit()
		if _, left := p.TakeBackRequests(); !left || p.UnitOf(0) != nil {
			t.Errorf("a request that depends on %s is kept", name)
		}
	}
	p = begin(t, locked())
	p.admit()
	effects, left := p.TakeBackRequests()
	p.fly(effects)
	if got := p.lockCalls(); !left || got != "+task:db migrate#1 -task:db migrate#1" {
		t.Errorf("left %v, calls %q", left, got)
	}
	p.round()
	if p.admit(); p.lockCalls() != "+task:db migrate#2" {
		t.Error("the lock is not asked for again")
	}
}

// A failed instance that waits for its next attempt names what it waits for, and its failure only during the back-off.
func TestRetriedInstanceNamesItsWait(t *testing.T) {
	t.Parallel()
	def, retries := tasks("each"), int32(1)
	def.Tasks["each"].Parallel, def.Tasks["each"].Concurrency, def.Tasks["each"].Retry = structpb.NewNumberValue(3), 1, &v1.RetryPolicy{MaxRetries: &retries}
	p := begin(t, def)
	p.round()
	p.admit()
	p.assign()
	p.round()
	i, _ := p.core.Index("each[0]")
	p.Dispatched(p.NextDispatch())
	p.fly(p.Answered(p.UnitOf(i), Answer{Response: &historyv1.ExecuteResponse{State: v1.TaskFailed, Error: "exit code 1"}, Beat: &historyv1.ExecuteProgress{}}, start))
	p.round()
	if why := p.WaitText(i); why != "exit code 1" {
		t.Errorf("during the back-off it waits: %s", why)
	}
	p.admit()
	p.round(dag.BackoffOver{Task: i, Claim: p.core.Task(i).Claim})
	if why := p.WaitText(i); why != "its task has reached its concurrency (1 in progress)" {
		t.Errorf("after the back-off it waits: %s", why)
	}
}

// A task that waits for a lock which other tasks of its run request is shown the name of the lock as the definition has it.
func TestWaitForALockOfTheRunNamesIt(t *testing.T) {
	t.Parallel()
	def := tasks("a", "b", "c")
	for _, task := range def.Tasks {
		task.Mutex = "db"
	}
	p := begin(t, def)
	p.admit()
	if why := p.WaitText(2); why != `its run has 2 ahead of it for the lock "db"` {
		t.Errorf("c waits: %s", why)
	}
}

// A unit enters when its lock is granted, once, and gives the lock back when it leaves.
func TestUnitEntersWithItsLock(t *testing.T) {
	t.Parallel()
	p := begin(t, locked())
	p.Input.HeldLocks = []*historyv1.HeldLock{{Lock: "task:other"}, {Lock: "task:db", Holder: "outer-1"}}
	p.admit()
	a := p.lockRequests[0].GetAcquire()
	if a.GetHolder() != "run" || a.GetExecution() != "first" || a.GetAsker() != "original" || a.GetLimit() != 1 || len(a.GetAbove()) != 1 {
		t.Errorf("the request is %v", a)
	}
	p.lockCalls()
	grant := func(asker string, holders ...string) {
		p.fly(p.Granted(&historyv1.Granted{Lock: "task:db", Claim: "migrate#1", Asker: asker, Holders: holders}, start))
	}
	grant("original", "other")
	p.heard("held by another", "Wait migrate: waits for the lock db, held by other")
	grant("an earlier execution")
	p.heard("of another execution")
	grant("original")
	grant("original") // answers may arrive twice
	p.heard("granted", "Wake")
	p.round(dag.CancelTask{Task: 0})
	if got := p.asked() + " " + p.lockCalls(); got != "-migrate#1 -task:db migrate#1" {
		t.Errorf("calls %q", got)
	}
	if grant("original"); p.lockCalls() != "-task:db migrate#1" {
		t.Error("a lock that the run no longer needs is kept")
	}
}

// A unit whose lock is held above its run fails instead of waiting for ever. Requests of a call that failed stay in front.
func TestUnitThatWouldWaitForEverFails(t *testing.T) {
	t.Parallel()
	p := begin(t, locked())
	p.admit()
	requests := p.TakeLockRequests()
	p.freeLock("task:other", "c")
	p.PutBackLockRequests(requests)
	if got := p.lockCalls(); got != "+task:db migrate#1 -task:other c" {
		t.Errorf("calls %q", got)
	}
	p.fly(p.Granted(&historyv1.Granted{Lock: "task:db", Claim: "migrate#1", Asker: "original", Holders: []string{"deploy of outer-1"}, Refused: true, Deadlock: true}, start))
	p.heard("deadlock", "gaveUp deadlock migrate")
	if e := p.events[0].(dag.GaveUp); !strings.Contains(e.Error, "the lock db is held by deploy of outer-1 until") || p.UnitOf(0) != nil || p.HasLockRequests() {
		t.Errorf("%+v", e)
	}
}

// A run hands down the locks above it, its run slot, and the lock of the unit that starts a run.
func TestRunsBelowLearnOfHeldLocks(t *testing.T) {
	t.Parallel()
	def := locked()
	def.Concurrency = &v1.RunConcurrency{MaxRuns: 1}
	p := begin(t, def)
	p.Input.HeldLocks = []*historyv1.HeldLock{{Lock: "task:m", Holder: "outer-1", Claim: "x#1"}}
	p.admit()
	held := func(u *Unit) (text string) {
		for _, h := range p.HeldBy(u) {
			text += h.GetLock() + " " + h.GetHolder() + " " + h.GetClaim() + ", "
		}
		return text
	}
	if got := held(nil); got != "task:m outer-1 x#1, " {
		t.Errorf("without a slot: %q", got)
	}
	p.RestoreSlot()
	if got, want := held(p.UnitOf(0)), "task:m outer-1 x#1, "+p.slotLock()+" run run, task:db run migrate#1, "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The strategy of a workflow decides what happens to a run that gets no run slot.
func TestRunSlot(t *testing.T) {
	t.Parallel()
	if begin(t, tasks("a")).AskSlot() {
		t.Error("a run without a limit needs a slot")
	}
	for _, test := range []struct{ strategy, state, text string }{
		{v1.StrategyFail, v1.RunRejected, "open already: a, b; the workflow's concurrency.maxRuns is 1"},
		{v1.StrategySkip, v1.RunCancelled, "open already: a, b; the workflow's concurrency.maxRuns is 1"},
		{v1.StrategyReplace, v1.RunCancelled, "replaced by a, b"},
		{"", v1.RunCancelled, "replaced by a, b"},
	} {
		def := tasks("a")
		def.Concurrency = &v1.RunConcurrency{MaxRuns: 1, Strategy: test.strategy}
		p := begin(t, def)
		if !p.AskSlot() || !p.HasLockRequests() {
			t.Fatalf("%q: no slot is requested", test.strategy)
		}
		grant := func(g *historyv1.Granted) {
			g.Claim = slotClaim
			p.fly(p.Granted(g, start))
		}
		grant(&historyv1.Granted{Holders: []string{"a", "b"}})
		p.heard("taken", "Slot")
		grant(&historyv1.Granted{Holders: []string{"a", "b"}, Refused: true})
		p.heard("refused", "abort "+test.state+": "+test.text)
		if end := p.events[0].(dag.Abort); end.Reason != v1.ReasonConcurrency || p.HasSlot() {
			t.Errorf("%q: the run ends with %+v", test.strategy, end)
		}
		grant(&historyv1.Granted{Holders: []string{"a"}, Refused: true, Deadlock: true})
		if end := p.events[1].(dag.Abort); end.State != v1.RunFailed || !strings.Contains(end.Error, "the place of a run of work is held by a until") {
			t.Errorf("a run below the holder ends with %+v", end)
		}
		p.said = nil
		if grant(&historyv1.Granted{}); !p.HasSlot() {
			t.Error("the granted slot is not held")
		}
		p.heard("granted", "Slot")
		p.lockCalls()
		if p.FreeSlot(); p.lockCalls() != "-run:work run" {
			t.Error("the slot is not given back")
		}
	}
}

// A granted placement waits for its dispatch, and the task is assigned. An answer that comes twice counts once.
func TestPlacementIsAppliedOnce(t *testing.T) {
	t.Parallel()
	p := begin(t, tasks("a", "b"))
	p.admit()
	req := p.PlaceRequest(false)
	granted := &historyv1.Assignment{Task: "a", Claim: 1, Node: "n", Queue: "q", Gpus: []int32{2}}
	p.fly(p.PlaceAnswered(req, &historyv1.PlaceResponse{Epoch: "one", Number: 7, Assigned: []*historyv1.Assignment{granted, granted}}, false))
	p.heard("answered", "placed a")
	if p.AwaitPlacement(false).GetEpoch() != "one" || p.AwaitPlacement(false) != nil || p.IsQuiet() {
		t.Error("b does not wait in the background, or waits twice")
	}
	p.round()
	u := p.NextDispatch()
	if u.Node != "n" || u.Assignment.GetQueue() != "q" || !slices.Equal(u.GPUs, []int32{2}) || p.NextDispatch() != nil {
		t.Errorf("the unit is %+v", u)
	}
	p.PutBack(u)
	if p.NextDispatch() != u {
		t.Error("what was put back is not dispatched first")
	}
	p.fly(p.Unsendable(u, "too large"))
	p.heard("not sent", "failed payload a")
	if next := p.PlaceRequest(false); next.GetEpoch() != "one" || next.GetAcknowledged() != 7 || len(next.GetRequests()) > 0 || p.asked() != "-a#1" {
		t.Errorf("the next call is %v", next)
	}
}

// Of the answers to a request, a late one is ignored, one that gives up ends the task, and one that waits is shown.
func TestAnswersOfPlacement(t *testing.T) {
	t.Parallel()
	p := begin(t, tasks("a", "b", "c"))
	p.admit()
	p.PlaceAnswered(p.PlaceRequest(false), &historyv1.PlaceResponse{Epoch: "one"}, false)
	p.round(dag.CancelTask{Task: 0})
	p.fly(p.News(&historyv1.PlaceResponse{
		Assigned: []*historyv1.Assignment{{Task: "a", Claim: 1, Node: "n"}, {Task: "unknown"}},
		Waiting:  []*historyv1.Waiting{{Task: "b", Claim: 1, Reason: "every node is full"}, {Task: "c", Claim: 1, Reason: "no GPU", GivenUp: true}},
	}))
	p.heard("news", "Wait b: every node is full", "gaveUp placement_timeout c")
	if got := p.asked(); got != "-a#1" || p.waiting != 1 || p.UnitOf(2) != nil {
		t.Errorf("calls %q, %d wait", got, p.waiting)
	}
	// A queue that has been replaced is sent everything that waits, once.
	p.fly(p.PlaceAnswered(p.PlaceRequest(false), &historyv1.PlaceResponse{Epoch: "two"}, false))
	if got := p.asked(); !p.HasRequests() || got != "+b#1" {
		t.Errorf("calls %q", got)
	}
	// While placement does not answer, nothing is sent, and nothing is lost.
	p.PlaceFailed()
	p.round(dag.CancelTask{Task: 1})
	if p.PlaceRequest(false) != nil || p.AwaitPlacement(false) != nil || !p.OwesReleases() {
		t.Error("placement is called during its pause")
	}
	if p.EndPause(); p.asked() != "-b#1" || p.OwesReleases() {
		t.Errorf("calls %q", p.asked())
	}
}

// A draining run requests nothing and ignores answers, but releases what it holds.
func TestDrainingRunOnlyReleases(t *testing.T) {
	t.Parallel()
	p := begin(t, tasks("a", "b"))
	p.admit()
	if p.PlaceRequest(true) != nil {
		t.Fatal("a draining run asks for nodes")
	}
	p.round(dag.CancelTask{Task: 1})
	req := p.PlaceRequest(true)
	effects := p.PlaceAnswered(req, &historyv1.PlaceResponse{Assigned: []*historyv1.Assignment{{Task: "a", Claim: 1, Node: "n"}}}, true)
	if len(req.GetRequests()) > 0 || len(req.GetReleased()) != 1 || effects != nil || p.AwaitPlacement(true) != nil {
		t.Errorf("the call is %v, its effects %v", req, effects)
	}
	if got := p.asked(); got != "+a#1" {
		t.Errorf("afterwards %q", got)
	}
}

// What stops a task depends on where its unit is. What is stopped twice ends once.
func TestStop(t *testing.T) {
	t.Parallel()
	silent := Answer{Kind: Silent, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{Spawned: true}}
	for name, test := range map[string]struct {
		p    *play
		to   func(*play)
		said []string
	}{
		"placed":   {placed(t, tasks("a")), func(*play) {}, []string{"cancelled a"}},
		"attended": {attended(t, tasks("a")), func(*play) {}, []string{"Cancel a"}},
		"detached": {attended(t, tasks("a")), func(p *play) { p.fly(p.Answered(p.UnitOf(0), detachedAnswer(), start)) }, []string{}},
		"approval": {begin(t, tasks("a:approval")), (*play).admit, []string{"Settle cancelled"}},
		"run":      {begin(t, tasks("a:run")), (*play).admit, []string{"CancelRun"}},
		"away":     {attended(t, tasks("a:vps")), func(p *play) { p.fly(p.Answered(p.UnitOf(0), silent, start)) }, []string{"Cancel a", "Settle cancelled"}},
	} {
		test.to(test.p)
		test.p.said = nil
		effects, ok := test.p.Stop(0)
		test.p.fly(effects)
		if test.p.heard(name, test.said...); !ok {
			t.Errorf("%s: the unit is not found", name)
		}
	}
	p := begin(t, tasks("a"))
	p.admit()
	if _, ok := p.Stop(0); ok {
		t.Error("a task that waits for a node is stopped instead of withdrawn")
	}
}

func detachedAnswer() Answer { return answered(v1.AttemptDetached, "", true) }

// A detached attempt is reattached while its lease lasts, and with it everything that has to be stopped.
func TestDetachedAttempts(t *testing.T) {
	t.Parallel()
	p := attended(t, tasks("a", "b"))
	p.said = nil
	p.fly(p.Detach(1))
	req := p.last[0].(Detach).Request
	if p.heard("first round", "Detach"); len(req.GetAttempts()) != 2 || req.GetLease().AsDuration() != time.Minute {
		t.Errorf("the request is %v", req)
	}
	p.fly(p.Detach(1))
	p.heard("the same round again")
	a, b := p.UnitOf(0), p.UnitOf(1)
	p.fly(p.Answered(a, detachedAnswer(), start))
	p.heard("detached", "Started", "running a", "Wake")
	p.fly(p.Reattach(true))
	p.heard("while others are being detached")
	p.fly(p.Detach(2))
	if p.heard("second round", "Detach"); len(p.last[0].(Detach).Request.GetAttempts()) != 1 {
		t.Error("more is asked than what did not detach")
	}
	p.round()
	carried := p.saveAll()
	if carried.Tasks["a"].GetDetachedAttempt().GetLead() != "a" || carried.Tasks["b"].DetachedAttempt != nil || p.IsQuiet() {
		t.Errorf("carried %v", carried)
	}
	p.Stop(0)
	p.fly(p.Reattach(true))
	p.heard("to be stopped", "Reattach a to stop")
	// Its node did not receive the activity, and the attempt may run until its lease is over.
	p.fly(p.Answered(a, Answer{Kind: Cancelled, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{}}, start))
	p.heard("cancelled", "After 1ms")
	p.fly(p.Due(p.last[0].(After).Timer, start))
	p.heard("again", "Reattach a to stop")
	lost := Answer{Kind: NotPickedUp, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{}}
	p.fly(p.Answered(a, lost, start.Add(20*time.Second)))
	p.heard("not picked up", "After 40s")
	p.fly(p.Due(p.last[0].(After).Timer, start.Add(time.Minute)))
	p.heard("the lease is over", "Settle moved")
	p.fly(p.Answered(b, answered(v1.TaskCompleted, "", true), start))
	if p.heard("completed", "Settle completed"); !p.IsQuiet() || p.asked() != "-a#1suspect -b#1done" {
		t.Errorf("calls %q", p.asked())
	}
}

// A node that gives a detached attempt a longer lease is waited for.
func TestDetachedLeaseIsThatOfTheNode(t *testing.T) {
	t.Parallel()
	p := attended(t, tasks("a"))
	answer := detachedAnswer()
	answer.Response.Lease = durationpb.New(8 * time.Minute)
	p.fly(p.Answered(p.UnitOf(0), answer, start))
	if got := p.UnitOf(0).LeaseUntil; !got.Equal(start.Add(8 * time.Minute)) {
		t.Errorf("the lease ends at %v", got)
	}
}

// Leases grow unless the heartbeat time-out is set, and where something is lost with them.
func TestMaxLease(t *testing.T) {
	t.Parallel()
	own := tasks("a")
	own.Tasks["a"].HeartbeatTimeout = "30s"
	minute := durationpb.New(time.Minute)
	for name, test := range map[string]struct {
		def     *v1.Definition
		options *v1.RunOptions
		want    time.Duration
	}{
		"default":              {tasks("a"), nil, 10 * time.Minute},
		"option":               {tasks("a"), &v1.RunOptions{MaxLease: minute}, time.Minute},
		"of the task":          {own, &v1.RunOptions{MaxLease: minute}, 0},
		"of the run":           {tasks("a"), &v1.RunOptions{HeartbeatTimeout: minute}, 0},
		"of the run, and both": {tasks("a"), &v1.RunOptions{HeartbeatTimeout: minute, MaxLease: minute}, time.Minute},
		"machine":              {tasks("a:vps"), nil, 0},
		"job":                  {tasks("a:k8s_job"), nil, 0},
	} {
		p := attended(t, test.def)
		p.Input.Options = test.options
		if got := p.MaxLease(p.UnitOf(0)); got != test.want {
			t.Errorf("%s: up to %v, want %v", name, got, test.want)
		}
	}
}

// A node is silent since its last heartbeat, whatever the time-out was at last, unless its clock is ahead.
func TestSinceWhenANodeIsSilent(t *testing.T) {
	t.Parallel()
	p := attended(t, tasks("a"))
	p.HeartbeatTimeout = 15 * time.Second
	for _, test := range []struct {
		sent *timestamppb.Timestamp
		want time.Duration
	}{
		{timestamppb.New(start.Add(-time.Second)), time.Second},
		{timestamppb.New(start.Add(-time.Hour)), time.Hour},
		{timestamppb.New(start.Add(time.Second)), 15 * time.Second},
		{nil, 15 * time.Second},
	} {
		u := p.UnitOf(0)
		if got, want := p.silence(u, &historyv1.ExecuteProgress{SentAt: test.sent}, start), phrase.Silence(u.Node, start.Add(-test.want)); got != want {
			t.Errorf("heartbeat of %v: %q, want %q", test.sent, got, want)
		}
	}
}

// The attempt of a long-lived task outlives its node's silence.
func TestAttemptThatIsAway(t *testing.T) {
	t.Parallel()
	silent := Answer{Kind: Silent, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{Spawned: true}}
	p := attended(t, tasks("a:vps"))
	p.said = nil
	u := p.UnitOf(0)
	p.fly(p.Answered(u, silent, start))
	p.round()
	p.heard("silent", "running a", "lost a", "Find a")
	if own := p.records.Of(0); p.Shown(0) != v1.TaskLost || !own.AwayAt.Equal(start) {
		t.Errorf("the record is %+v", own)
	}
	p.fly(p.Reattach(false))
	p.heard("one request is enough")
	p.fly(p.NotFound(u))
	p.heard("not delivered", "After 10s")
	p.fly(p.Due(p.last[0].(After).Timer, start))
	p.fly(p.Reattach(false))
	p.heard("after a while", "Wake", "Find a")
	p.fly(p.Found(u, true))
	p.fly(p.Found(u, true))
	p.fly(p.Reattach(false))
	p.heard("back", "found a", "Wake", "Reattach a")
	if own := p.records.Of(0); own.Away != "" || !own.AwayAt.IsZero() {
		t.Errorf("the record is %+v", own)
	}
	p.round()
	p.fly(p.Answered(u, silent, start))
	p.said = nil
	p.fly(p.StopAway(u))
	p.heard("stopped", "Cancel a", "Settle stopped")
	if p.NotFound(u) != nil || p.Found(u, true) != nil || !p.IsQuiet() {
		t.Error("what has ended is looked for")
	}
}

// A node may have recorded the result of an attempt whose lease is lost.
func TestRecordsOfLostAttempts(t *testing.T) {
	t.Parallel()
	silent := Answer{Kind: Silent, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{Spawned: true}}
	for name, test := range map[string]struct {
		recorded *historyv1.ExecuteResponse
		said     string
	}{
		"nothing known": {nil, "Settle lost"},
		"no record":     {&historyv1.ExecuteResponse{State: v1.TaskLost}, "Settle lost"},
		"a record":      {&historyv1.ExecuteResponse{State: v1.TaskCompleted}, "Settle completed"},
		"a live node":   {&historyv1.ExecuteResponse{State: v1.AttemptMoved, Error: "it lives"}, "Settle moved"},
	} {
		p := attended(t, tasks("a"))
		p.said = nil
		u := p.UnitOf(0)
		p.fly(p.Answered(u, silent, start))
		p.heard(name+", silent", "Started", "silent a", "AwaitRecord a true")
		p.fly(p.Settle(u, silent, start)) // the store was away
		p.heard(name+", again", "Started", "silent a", "AwaitRecord a true")
		if own := p.records.Of(0); p.Shown(0) != v1.TaskRunning || own.Silent == "" {
			t.Errorf("%s: the record is %+v", name, own)
		}
		p.fly(p.Recorded(u, silent, test.recorded))
		p.heard(name, "Started", test.said)
		if own := p.records.Of(0); own.Silent != "" {
			t.Errorf("%s: it is silent: %s", name, own.Silent)
		}
	}
}

// What is known of a batch whose node fell silent is loaded before its members end.
func TestProgressOfABatch(t *testing.T) {
	t.Parallel()
	def := tasks("each")
	def.Tasks["each"].Parallel, def.Tasks["each"].Batch = structpb.NewNumberValue(3), structpb.NewNumberValue(3)
	p := begin(t, def)
	p.round()
	p.admit()
	p.assign()
	p.round()
	u := p.NextDispatch()
	p.Dispatched(u)
	p.said = nil
	silent := Answer{Kind: Silent, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{Spawned: true}}
	p.fly(p.Recorded(u, silent, nil))
	p.heard("silent", "LoadProgress")
	answer := p.last[0].(LoadProgress).Answer
	answer.Progress = &historyv1.ExecuteResponse{Batch: []*historyv1.MemberResult{{Index: 0}}}
	p.fly(p.Progressed(u, answer))
	p.heard("loaded", "Settle completed", "Settle lost", "Settle moved")
}

// How an attempt ended is shown, cached, and reported to the core.
func TestSettledEnds(t *testing.T) {
	t.Parallel()
	retrying := func(when string) *v1.Definition {
		def := tasks("a")
		def.Tasks["a"].Retry = &v1.RetryPolicy{MaxRetries: new(int32(3)), When: when}
		return def
	}
	for name, test := range map[string]struct {
		def     *v1.Definition
		before  func(*play)
		state   string
		refusal string
		said    []string
	}{
		"completed":          {def: tasks("a"), state: v1.TaskCompleted, said: []string{"End", "completed a"}},
		"cached":             {def: tasks("a"), before: func(p *play) { p.records.At(0).CacheKey = "k" }, state: v1.TaskCompleted, said: []string{"End", "Cache", "completed a"}},
		"too much context":   {def: tasks("a"), state: v1.TaskCompleted, refusal: "too large", said: []string{"End", "failed context a"}},
		"killed":             {def: tasks("a"), before: func(p *play) { p.core.Apply(dag.Kill{Task: 0, Reason: "by ann"}) }, state: v1.TaskCancelled, said: []string{"End", "killed killed a"}},
		"failed":             {def: retrying(""), state: v1.TaskFailed, said: []string{"End", "failed a"}},
		"retried if":         {def: retrying("attempt.exitCode == 2"), state: v1.TaskFailed, said: []string{"End", "AskRetry"}},
		"completed, anyway?": {def: retrying("attempt.exitCode == 2"), state: v1.TaskCompleted, said: []string{"End", "completed a"}},
	} {
		p := attended(t, test.def)
		if test.before != nil {
			test.before(p)
		}
		p.said = nil
		end := NewEnd(Place{}, Member{Task: 0, Claim: 1})
		end.Response.Result, end.Ended.State = &v1.TaskResult{}, test.state
		p.fly(p.Settled(end, test.refusal))
		p.heard(name, test.said...)
	}
	p := attended(t, retrying("attempt.exitCode == 2"))
	end := NewEnd(Place{}, Member{Task: 0, Claim: 1})
	end.Ended.State, end.Ended.Reason = v1.TaskLost, v1.ReasonNodeLost
	ended := p.RetryAnswered(end, &historyv1.ConditionAnswer{Error: "no such variable"})[0].(Raise).Event.(dag.Ended)
	if !ended.NoRetry || !strings.Contains(ended.Error, "retry.when: no such variable") || !strings.Contains(ended.Error, "it is not retried") {
		t.Errorf("%+v", ended)
	}
	if ended = p.RetryAnswered(end, &historyv1.ConditionAnswer{Value: true})[0].(Raise).Event.(dag.Ended); ended.NoRetry || ended.Error != "" {
		t.Errorf("%+v", ended)
	}
}

// The next execution restores exactly the attempt that this one hands over.
func TestDetachedAttemptIsRestored(t *testing.T) {
	t.Parallel()
	left := &historyv1.DetachedAttempt{}
	prototest.Fill(left)
	left.Lead, left.Members = "a", []string{"a"}
	p := prepare(t, tasks("a"))
	p.RestoreTask(0, &historyv1.TaskState{DetachedAttempt: left}, start)
	if again := p.saved(p.UnitOf(0)); !proto.Equal(left, again) {
		t.Errorf("%v\nis handed over as\n%v", left, again)
	}
	p.RestoreTask(0, &historyv1.TaskState{DetachedAttempt: left, Away: "since noon"}, start)
	if p.UnitOf(0).Phase != Away || !p.IsQuiet() {
		t.Error("it is not away")
	}
	left.Lead, left.Members = "migrate", []string{"migrate"}
	p = prepare(t, locked())
	p.RestoreTask(0, &historyv1.TaskState{DetachedAttempt: left}, start)
	if got := p.lockCalls(); got != "" {
		t.Errorf("before its end: %q", got)
	}
	p.fly(p.Answered(p.UnitOf(0), answered(v1.TaskCompleted, "", true), start))
	if got, want := p.lockCalls(), fmt.Sprintf("-task:db migrate#%d", left.GetClaim()); got != want {
		t.Errorf("after its end: %q, want %q", got, want)
	}
}

// asking returns a run whose only task waits for an approval.
func asking(t *testing.T, spec map[string]any) *play {
	t.Helper()
	def := tasks("ship:approval")
	def.Tasks["ship"].Spec, _ = structpb.NewStruct(spec)
	p := begin(t, def)
	p.admit()
	return p
}

// A task that needs two approvals takes them of two people, and its output names both. The next execution knows who has approved.
func TestTwoPeopleApprove(t *testing.T) {
	t.Parallel()
	p := asking(t, map[string]any{"message": "ship it?", "approvals": 2, "timeout": "2h"})
	p.heard("asked", "paused ship", "placed ship", "After 2h0m0s")
	p.round()
	tag, _ := structpb.NewStruct(map[string]any{"tag": "v2"})
	p.fly(p.Approve(0, &historyv1.TaskCommand{By: "ann", Input: tag}, start))
	p.heard("one", "approved ship")
	carried := p.saveAll()
	const text = "ship it? (1 of 2 have approved with tag=v2)"
	if shown := p.ApprovalOf(0).Text(); shown != text {
		t.Errorf("people see %q", shown)
	}
	next := &play{State: New(p.Config, p.core, p.records), t: t}
	next.fly(next.RestoreTask(0, carried.Tasks["ship"], start.Add(30*time.Minute)))
	next.heard("restored", "After 1h30m0s")
	if shown := next.ApprovalOf(0).Text(); shown != text {
		t.Errorf("people see %q in the next execution", shown)
	}
	next.fly(next.Approve(0, &historyv1.TaskCommand{By: "bob", Reason: "looks good"}, start))
	next.heard("two", "approved ship", "StopTimer", "Settle completed")
	output := next.last[2].(Settle).End.Response.GetResult().GetOutput().GetFields()
	if output["by"].GetStringValue() != "bob" || len(output["approvals"].GetListValue().GetValues()) != 2 || next.Approvals() != 0 {
		t.Errorf("the output is %v", output)
	}
}

// A reminder comes once, also in the next execution, and not after the decision.
func TestApprovalRemindsOnce(t *testing.T) {
	t.Parallel()
	p := asking(t, map[string]any{"message": "ship it?", "remindAfter": "1h"})
	p.heard("asked", "paused ship", "placed ship", "After 1h0m0s")
	p.round()
	carried := p.saveAll()
	next := &play{State: New(p.Config, p.core, p.records), t: t}
	next.fly(next.RestoreTask(0, carried.Tasks["ship"], start.Add(20*time.Minute)))
	next.heard("restored", "After 40m0s")
	timer := next.last[0].(StartTimer).Timer
	next.fly(next.Due(timer, start))
	next.heard("reminded", "reminded ship")
	if again := next.saveAll().Tasks["ship"].GetApprovalReminder(); again != nil {
		t.Errorf("there is another reminder: %v", again)
	}
	next.fly(next.Approve(0, &historyv1.TaskCommand{}, start))
	next.heard("decided", "approved ship", "Settle completed")
	output := next.last[len(next.last)-1].(Settle).End.Response.GetResult().GetOutput().AsMap()
	for _, field := range []string{"by", "reason"} {
		if value, exists := output[field]; !exists || value != "" {
			t.Errorf("after a decision without name and reason, %s of the output is %v", field, value)
		}
	}
	next.fly(next.Due(timer, start))
	next.heard("decided before the reminder")
	p.fly(p.Approve(0, &historyv1.TaskCommand{By: "bob"}, start))
	p.heard("decided in time", "approved ship", "StopTimer", "Settle completed")
}

// The definition decides how an approval ends that comes too late.
func TestApprovalTimesOut(t *testing.T) {
	t.Parallel()
	for onTimeout, state := range map[string]string{v1.OnTimeoutApprove: v1.TaskCompleted, v1.OnTimeoutReject: v1.TaskRejected} {
		p := asking(t, map[string]any{
			"timeout": "2h", "onTimeout": onTimeout, "remindAfter": "1h", "inputs": map[string]any{"tag": map[string]any{"default": "v1"}},
		})
		p.said = nil
		timer, reminder := p.last[len(p.last)-2].(StartTimer).Timer, p.last[len(p.last)-1].(StartTimer).Timer
		p.fly(p.Due(reminder, start))
		p.heard(onTimeout, "reminded ship")
		p.fly(p.Due(timer, start))
		p.heard(onTimeout, p.said[0], "StopTimer", "Settle "+state)
		output := p.last[len(p.last)-1].(Settle).End.Response.GetResult().GetOutput().AsMap()
		if (output["tag"] == "v1") != (onTimeout == v1.OnTimeoutApprove) || output["by"] != "" || output["reason"] != "no decision within 2h" {
			t.Errorf("%s: the output is %v", onTimeout, output)
		}
		p.fly(p.Due(timer, start))
		p.heard(onTimeout + ", again")
	}
}

// The message is rendered first. If that fails, the task fails instead of asking people for something unclear.
func TestApprovalMessageIsRendered(t *testing.T) {
	t.Parallel()
	message := map[string]any{"message": "ship ${{ input.version }}?"}
	p := asking(t, message)
	p.heard("admitted", "Render")
	p.fly(p.Rendered(0, &historyv1.ConditionAnswer{Error: "no such input"}, start))
	p.heard("failed", "placed ship", "Settle failed")
	p.fly(p.Rendered(0, &historyv1.ConditionAnswer{}, start))
	p.heard("it has ended")
	p = asking(t, message)
	p.said = nil
	rendered, _ := structpb.NewStruct(map[string]any{"message": "ship 1.2?"})
	p.fly(p.Rendered(0, &historyv1.ConditionAnswer{Rendered: rendered}, start))
	p.heard("rendered", "paused ship", "placed ship")
	if shown := p.ApprovalOf(0).Text(); shown != "ship 1.2?" {
		t.Errorf("people see %q", shown)
	}
}

// A task of type run ends with its run.
func TestRunOfATask(t *testing.T) {
	t.Parallel()
	running := func() (*play, *Unit) {
		p := begin(t, tasks("call:run"))
		p.admit()
		u := p.UnitOf(0)
		p.fly(p.RunStarted(u, "child-1", start))
		p.fly(p.RunOpened(u, "first"))
		p.heard("opened", "placed call", "StartRun call", "Started", "running call")
		p.round()
		return p, u
	}
	for name, test := range map[string]struct {
		end  *historyv1.RunEnd
		said string
	}{
		"failed":             {&historyv1.RunEnd{Status: v1.RunEndFailed, Error: "x"}, "failed child_run 1: run child-1 failed: x"},
		"failed for good":    {&historyv1.RunEnd{Status: v1.RunEndFailed, FinalReason: v1.ReasonBadSpec}, "failed bad_spec final 1: run child-1 failed: "},
		"rejected":           {&historyv1.RunEnd{State: v1.RunRejected, Error: "full"}, "failed concurrency 1: run child-1 was rejected: full"},
		"cancelled by hand":  {&historyv1.RunEnd{Status: v1.RunEndCancelled}, "failed child_run final 1: run child-1 was cancelled"},
		"terminated":         {&historyv1.RunEnd{Status: v1.RunEndTerminated}, "failed child_run final 1: run child-1 was terminated"},
		"not carried out":    {&historyv1.RunEnd{Error: "gone"}, "failed system 1: run child-1 could not be carried out: gone"},
		"cancelled too soon": {nil, "cancelled final 1: "},
	} {
		p, u := running()
		p.fly(p.RunOver(u, test.end))
		end := p.last[0].(Settle).End
		e := end.Ended
		got := strings.TrimSpace(e.State + " " + e.Reason)
		if e.NoRetry {
			got += " final"
		}
		if got = fmt.Sprintf("%s %d: %s", got, e.ExitCode, e.Error); got != test.said {
			t.Errorf("%s: %q, want %q", name, got, test.said)
		}
		if end.Response.GetStartedAt() == nil || p.RunOf(0) != nil {
			t.Errorf("%s: %v", name, end.Response)
		}
	}
	p, u := running()
	p.said = nil
	p.fly(p.RunOver(u, &historyv1.RunEnd{Status: v1.RunEndCompleted}))
	if p.heard("completed", "Wake"); len(p.Results(5)) != 1 || len(p.Results(5)) != 0 || !p.HasResults() {
		t.Error("the result is not read once")
	}
	p.ResultsRead(1)
	p.fly(p.RunRead(u, &historyv1.ExecuteResponse{State: v1.TaskCompleted, Result: &v1.TaskResult{}}))
	if p.heard("read", "Settle completed"); p.HasResults() {
		t.Error("the result is read again")
	}
	p, u = running()
	carried := p.saveAll()
	carried.Tasks["call"].Task.ChildRun = "child-1"
	next := &play{State: New(p.Config, p.core, p.records), t: t}
	next.Input.State = carried
	next.fly(next.RestoreTask(0, carried.Tasks["call"], start))
	next.heard("restored", "ReattachRun")
	if again := next.RunOf(0); again.ID != "child-1" || again.First != "first" {
		t.Errorf("the run is %+v", again)
	}
	effects, _ := p.Stop(0)
	if why := effects[0].(CancelRun).Why; why != "with task call of run run" {
		t.Error(why)
	}
	p.said = nil
	p.fly(p.RunOver(u, &historyv1.RunEnd{Status: v1.RunEndCancelled}))
	p.heard("cancelled with its task", "Settle cancelled")
}

// The deadline of a task starts once, with the rest of its time if it was ready before, and stops with the task. That of the run is
// carried.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	def := tasks("a")
	def.Tasks["a"].Deadline, def.Deadline = "10m", "1h"
	for passed, left := range map[time.Duration]time.Duration{0: 10 * time.Minute, 4 * time.Minute: 6 * time.Minute, time.Hour: time.Millisecond} {
		p := begin(t, def)
		if passed > 0 {
			p.records.At(0).ReadyAt = start.Add(-passed)
		}
		p.fly(p.StartDeadline(0, start))
		timer := p.last[0].(StartTimer).Timer
		p.fly(p.StartDeadline(0, start.Add(time.Minute)))
		p.fly(p.StopDeadline(0))
		p.heard("started", "After "+left.String())
		p.fly(p.Due(timer, start))
		p.round(dag.Cancel{})
		p.fly(p.StopDeadline(0))
		p.fly(p.Due(timer, start))
		p.heard("ended", "expire a: it did not end within its deadline of 10m: it is next in its run", "StopTimer")
	}
	p := begin(t, def)
	p.fly(p.StartRunDeadline(start, start))
	p.fly(p.Due(p.last[0].(After).Timer, start))
	p.heard("the run", "After 1h0m0s", "abort failed: the run did not end within its deadline of 1h; a waited: it is next in its run")
	carried := p.saveAll()
	next := begin(t, def)
	next.Restore(carried)
	next.fly(next.StartRunDeadline(start.Add(time.Minute), start.Add(40*time.Minute)))
	next.heard("the next execution", "After 20m0s")
}

// A task and a run that take longer than expected are marked once, also across executions, and continue.
func TestLateTaskAndRunAreMarkedOnce(t *testing.T) {
	t.Parallel()
	def := tasks("a")
	def.Tasks["a"].ExpectedWithin, def.ExpectedWithin = "10m", "1h"
	p := begin(t, def)
	p.fly(p.StartRunDeadline(start, start))
	run := p.last[0].(After).Timer
	p.fly(p.StartDeadline(0, start))
	task := p.last[0].(StartTimer).Timer
	p.fly(p.StartDeadline(0, start.Add(time.Minute)))
	p.heard("started", "After 1h0m0s", "After 10m0s")
	early := begin(t, def)
	early.Input.State = p.saveAll()
	early.Restore(early.Input.GetState())
	early.fly(early.StartRunDeadline(start.Add(time.Minute), start.Add(40*time.Minute)))
	early.heard("the next execution before that", "After 20m0s")

	p.fly(p.Due(task, start.Add(11*time.Minute)))
	p.fly(p.Due(task, start.Add(12*time.Minute)))
	p.fly(p.Due(run, start.Add(time.Hour)))
	p.heard("late",
		"late a since 12:10: it has not ended within the expected 10m: it is next in its run",
		"late run since 13:00: the run has not ended within the expected 1h; a waited: it is next in its run")
	carried := p.saveAll()
	next := begin(t, def)
	next.Input.State = carried
	next.records.Restore(0, carried.GetTasks()["a"], false)
	next.Restore(carried)
	next.fly(next.StartRunDeadline(start.Add(2*time.Hour), start.Add(2*time.Hour)))
	next.fly(next.StartDeadline(0, start.Add(2*time.Hour)))
	next.heard("the next execution after that")
}

// The error about a missed deadline names what the task waited for, or what its first instance waited for, unless another one runs.
func TestMissedDeadlineNamesTheWait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind, want string
		prepare    func(*play)
	}{
		"a fan-out":           {"shell", "; each[0] waited: it is next in its run", func(*play) {}},
		"a fan-out that runs": {"shell", "", func(p *play) { p.admit(); p.assign(); p.round() }},
		"a held fan-out":      {"shell", "; each[0] waited: held by ann: not yet", func(p *play) { p.fly(p.Hold(p.core.Len()-2, "by ann: not yet")) }},
		"approvals":           {"approval", "; each[0] waited: waits for approval", func(p *play) { p.admit(); p.round() }},
	} {
		def := tasks("each:" + test.kind)
		def.Tasks["each"].Deadline, def.Tasks["each"].Parallel, def.Tasks["each"].Concurrency = "10m", structpb.NewNumberValue(2), 1
		p := begin(t, def)
		p.round()
		test.prepare(p)
		p.fly(p.StartDeadline(0, start))
		timer := p.last[0].(StartTimer).Timer
		p.said = nil
		p.fly(p.Due(timer, start))
		p.heard(name, "expire each: it did not end within its deadline of 10m"+test.want)
	}
}

// A cached result answers a task, unless nothing is cached, the key has no value, the run made the result itself, or its context
// update does not fit.
func TestCachedResultIsReused(t *testing.T) {
	t.Parallel()
	cached := func(run string) *historyv1.ConditionAnswer {
		return &historyv1.ConditionAnswer{Text: "k", Cached: &historyv1.CachedResult{RunId: run, Response: &historyv1.ExecuteResponse{Result: &v1.TaskResult{}}}}
	}
	for name, test := range map[string]struct {
		answer     *historyv1.ConditionAnswer
		generation int32
		refusal    string
		said       []string
	}{
		"another run":                 {answer: cached("other"), said: []string{"SettleCached", "reused"}},
		"nothing":                     {answer: &historyv1.ConditionAnswer{Text: "k"}},
		"a key that fails":            {answer: &historyv1.ConditionAnswer{Error: "no such input"}, said: []string{"queued a"}},
		"the run itself":              {answer: cached("run"), said: []string{"SettleCached", "reused"}},
		"the generation before":       {answer: cached("run"), generation: 1},
		"an update that does not fit": {answer: cached("other"), refusal: "the context is full", said: []string{"SettleCached"}},
	} {
		def := tasks("a")
		def.Tasks["a"].Cache = &v1.Cache{Key: "input.k"}
		p := begin(t, def)
		p.Input.Generation = test.generation
		p.heard(name, "LookUp")
		p.fly(p.LookedUp(0, test.answer))
		if e, ok := append(p.last, nil)[0].(SettleCached); ok {
			p.fly(p.CachedSettled(e, test.refusal))
		}
		p.heard(name, test.said...)
		isReused := len(p.events) > 0
		if p.admit(); (p.UnitOf(0) == nil) != isReused {
			t.Errorf("%s: reused %v, the unit is %v", name, isReused, p.UnitOf(0))
		}
		if text := p.records.Of(0).Uncached; strings.Contains(text, "no such input") != (test.answer.GetError() != "") {
			t.Errorf("%s: the task shows %q", name, text)
		}
	}
}

// Every field of a State or a unit is carried to the next execution, or can be rebuilt there.
func TestStateForgetsNoField(t *testing.T) {
	t.Parallel()
	kept := map[string]string{
		"State.Config": "rebuilt from the input", "State.core": "TaskState.task", "State.records": "TaskState.task",
		"State.effects": "empty between two calls", "State.queue": "RunState.held",
		"State.units":        "rebuilt from detached attempts, child runs and approvals; other tasks are admitted again",
		"State.lockRequests": "empty when the run continues as new", "State.hasSlot": "acquired by the first execution",
		"State.awaitsSlot": "the run asks for its slot again, or has it",
		"State.epoch":      "everything is requested again", "State.acknowledged": "everything is requested again",
		"State.requests": "everything is requested again", "State.sent": "of the running call", "State.waiting": "everything is requested again",
		"State.released": "sent before the run continues as new", "State.isAwaiting": "everything is requested again",
		"State.isPausing": "everything is requested again", "State.placed": "empty when the run continues as new",
		"State.attended": "zero when the run continues as new", "State.asked": "zero when the run continues as new",
		"State.workspaces": "rebuilt from the definition", "State.gangs": "rebuilt from the units", "State.detached": "TaskState.detached_attempt", "State.approvals": "counted again", "State.completed": "empty when the run continues as new",
		"State.isReading": "false when the run continues as new", "State.abandoned": "RunState.abandoned", "State.due": "TaskState.ready_at", "State.runDue": "RunState.deadline_at", "State.finallyDue": "FinallyState.deadline_at", "State.finallyStoppedAt": "FinallyState.stopped_at", "State.hasFinallyTimer": "started again", "State.silentSince": "found again", "State.isSeekingSilent": "false when the run continues as new", "State.expectedAt": "RunState.expected_at",
		"Unit.Run": "TaskState.child_first", "Unit.approval": "TaskState.approvals",
		"Unit.Lead": "DetachedAttempt.lead", "Unit.Members": "DetachedAttempt.members", "Unit.Claim": "DetachedAttempt.claim",
		"Unit.Phase": "TaskState.away", "Unit.Place": "DetachedAttempt.node", "Unit.Assignment": "DetachedAttempt.queue",
		"Unit.LeaseUntil": "DetachedAttempt.lease_until",
		"Unit.lock":       "TaskState.lock", "Unit.startedAt": "TaskState.task", "Unit.stopped": "the core decides again to stop it",
		"Unit.isSteered": "false when the run continues as new", "Unit.isUnsure": "the node knows", "Unit.isSought": "it is sought again", "Unit.isRequested": "everything is requested again",
		"Unit.askedIn": "of this history", "Unit.gang": "rebuilt from the units; ends that are withheld are read from their nodes again", "Unit.excuse": "of an attempt that is ending",
	}
	for _, of := range []reflect.Type{reflect.TypeFor[State](), reflect.TypeFor[Unit]()} {
		for i := range of.NumField() {
			field := of.Name() + "." + of.Field(i).Name
			if kept[field] == "" {
				t.Errorf("nothing is known of %s after continue-as-new", field)
			}
			delete(kept, field)
		}
	}
	for field := range kept {
		t.Errorf("%s does not exist", field)
	}
}

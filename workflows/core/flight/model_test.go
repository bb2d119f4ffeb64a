package flight

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestRunIsTheModel plays random runs. Placement, locks, nodes and people answer in random order, and the run continues as new in
// between. No attempt starts twice, nothing exceeds its limit, and each task ends as in the model, which knows only how attempts
// end.
func TestRunIsTheModel(t *testing.T) {
	testneeds.Checks(t, 3000)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for steps := 0; !w.over; steps++ {
			if steps > 5000 {
				t.Fatalf("the run hangs: %+v", w.core.Records())
			}
			w.step()
			w.check()
		}
		for i := range w.graph.Len() {
			if name, got := w.graph.Name(i), w.core.Task(i).State; got != w.model(name) {
				t.Fatalf("task %s is %s, the model %s", name, got, w.model(name))
			}
		}
		if w.sendRequests(); !w.IsQuiet() || len(w.units)+len(w.held)+len(w.locking)+len(w.claims) > 0 {
			t.Fatalf("left over: units %v, locks %v %v, claims %v", w.units, w.held, w.locking, w.claims)
		}
	})
}

// world carries out the effects of a run. Answers wait in todo, in any order.
type world struct {
	*State
	t      *rapid.T
	def    *v1.Definition
	graph  *dag.Graph
	seed   uint64
	events []dag.Event
	todo   []func()
	over   bool

	drains        bool // the run is about to continue as new
	execution     int
	interruptions int
	ended         map[string]int                    // attempts that have counted, by task or instance
	started       map[string]bool                   // dispatches by claim
	running       map[string]*Unit                  // attempts on nodes by claim
	claims        map[string]bool                   // in the placement queue or placed
	locking       map[string]*historyv1.LockRequest // by claim
	held          map[string]string                 // lock by claim
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, def: &v1.Definition{Name: "work", Tasks: map[string]*v1.TaskDefinition{}}, seed: rapid.Uint64().Draw(t, "seed"),
		ended: map[string]int{}, started: map[string]bool{}, running: map[string]*Unit{}, claims: map[string]bool{}, held: map[string]string{}, locking: map[string]*historyv1.LockRequest{},
	}
	draw := func(most int32, label string) int32 { return rapid.Int32Range(0, most).Draw(t, label) }
	w.def.MaxParallel = draw(3, "maxParallel")
	for i := range 1 + draw(4, "tasks") {
		task := &v1.TaskDefinition{Type: v1.TypeShell, Retry: &v1.RetryPolicy{MaxRetries: new(draw(2, "retries"))}}
		for k := range i {
			if draw(3, "edge") == 0 {
				task.DependsOn = append(task.DependsOn, fmt.Sprintf("t%d", k))
			}
		}
		switch draw(4, "lock") {
		case 0:
			task.Mutex = "m"
		case 1:
			task.Semaphore = &v1.Semaphore{Name: "s", Limit: 2}
		}
		if n := draw(8, "instances") - 4; n > 0 {
			task.Parallel, task.MaxFailures, task.Concurrency = structpb.NewNumberValue(float64(n)), n, draw(2, "concurrency")
			task.Batch = structpb.NewNumberValue(float64(1 + draw(2, "batch")))
		}
		w.def.Tasks[fmt.Sprintf("t%d", i)] = task
	}
	var err error
	if w.graph, err = dag.NewGraph(w.def, nil); err != nil {
		t.Fatal(err)
	}
	w.begin(dag.New(w.graph))
	w.decide(w.core.Start())
	return w
}

// begin begins an execution.
func (w *world) begin(core *dag.State) {
	w.execution++
	w.State = New(Config{
		Input: &historyv1.RunInput{Definition: w.def}, RunID: "run", Chain: "chain", Self: "run", First: "first",
		Original: fmt.Sprint(w.execution), Limits: limits.Run{InFlight: 3}.WithDefaults(), HeartbeatTimeout: 15 * time.Second,
	}, core, NewRecords(nil))
}

// verdict returns how an attempt of a task or instance ends.
func (w *world) verdict(name string, attempt int) string {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, name, attempt)
	return []string{v1.TaskCompleted, v1.TaskCompleted, v1.TaskFailed, v1.TaskLost}[h.Sum64()%4]
}

// model returns how a task ends: as its attempts do, unless a task above it did not complete.
func (w *world) model(name string) string {
	def := w.def.GetTasks()[name]
	for _, parent := range def.GetDependsOn() {
		if w.model(parent) != v1.TaskCompleted {
			return v1.TaskSkipped
		}
	}
	if def.GetParallel() != nil { // as many instances may fail as there are
		return v1.TaskCompleted
	}
	last := ""
	for attempt := 0; attempt <= int(def.GetRetry().GetMaxRetries()) && last != v1.TaskCompleted; attempt++ {
		last = w.verdict(name, attempt)
	}
	if last != v1.TaskCompleted && def.GetRetry().GetMaxRetries() > 0 {
		return v1.TaskDeadLetter
	}
	return last
}

func (w *world) later(do func()) { w.todo = append(w.todo, do) }

func (w *world) decide(d dag.Decisions) {
	for _, i := range d.Changed {
		w.records.Changed(i, w.core.Task(i), false, false)
	}
	for _, i := range d.Withdraw {
		w.fly(w.Withdraw(i))
	}
	for _, i := range d.Expand {
		e := dag.Expanded{Task: i, Count: int(w.core.Definition(i).GetParallel().GetNumberValue())}
		w.later(func() { w.events = append(w.events, e) })
	}
	for _, b := range d.Backoff {
		e := dag.BackoffOver{Task: b.Task, Claim: w.core.Task(b.Task).Claim}
		w.later(func() { w.events = append(w.events, e) })
	}
	for _, i := range d.Place {
		w.fly(w.Want(i))
	}
	w.over = w.over || d.End != nil
}

func (w *world) fly(effects []Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case Raise:
			w.events = append(w.events, e.Event)
		case Settle:
			w.fly(w.Settled(e.End, ""))
		case AwaitRecord:
			w.later(func() { w.fly(w.Recorded(e.Unit, e.Answer, nil)) })
		case After:
			w.later(func() { w.fly(w.Due(e.Timer, start.Add(time.Hour))) })
		case Reattach:
			w.attend(e.Unit)
		case Detach:
			for _, ref := range e.Request.GetAttempts() {
				i, _ := w.core.Index(ref.GetTask())
				u := w.UnitOf(i)
				w.later(func() {
					if _, runs := w.running[w.idOf(u)]; runs && u.Phase == Attended {
						w.fly(w.Answered(u, detachedAnswer(), start))
					}
				})
			}
		}
	}
}

func (w *world) idOf(u *Unit) string { return names.AttemptID(w.core.Name(u.Lead), u.Claim) }

// attend waits for the end of an attempt, unless the run detaches it first.
func (w *world) attend(u *Unit) {
	s, id := w.State, w.idOf(u)
	w.running[id] = u
	w.later(func() {
		if _, runs := w.running[id]; !runs || w.State != s || u.Phase != Attended {
			return
		}
		delete(w.running, id)
		answer := answered(v1.TaskCompleted, "", true)
		if rapid.IntRange(0, 3).Draw(w.t, "moved") == 0 {
			w.fly(w.Answered(u, answered(v1.AttemptMoved, v1.ReasonNoRoom, false), start))
			return
		}
		for _, m := range u.Members {
			name := w.core.Name(m)
			state := w.verdict(name, w.ended[name])
			w.ended[name]++
			answer.Response.Batch = append(answer.Response.Batch, &historyv1.MemberResult{Index: int32(w.core.Number(m)), State: state})
		}
		if first := answer.Response.Batch[0].GetState(); len(u.Members) == 1 {
			if answer.Response.State, answer.Response.Batch = first, nil; first == v1.TaskLost {
				answer = failing(Silent, true)
			}
		}
		w.fly(w.Answered(u, answer, start))
	})
}

// step lets something happen, and then the run continue until it has nothing to do.
func (w *world) step() {
	what := 0
	if w.interruptions < 15 {
		what = rapid.IntRange(0, 20).Draw(w.t, "what")
	}
	switch w.interruptions++; what {
	case 1:
		w.Pause()
		w.fly(w.SetAllAside(v1.ReasonPaused, "paused"))
		w.later(func() { w.Resume() })
	case 2:
		i := rapid.IntRange(0, w.core.Len()-1).Draw(w.t, "task")
		w.fly(w.Hold(i, "by ann"))
		w.later(func() { w.fly(w.Unhold(i)) })
	case 3:
		w.drains = true
	default:
		w.interruptions--
		if n := len(w.todo); n > 0 {
			k := rapid.IntRange(0, n-1).Draw(w.t, "which")
			do := w.todo[k]
			w.todo = slices.Delete(w.todo, k, k+1)
			do()
		}
	}
	for isBusy := true; isBusy && !w.over; isBusy = len(w.events) > 0 {
		events := w.events
		w.events = nil
		w.decide(w.core.Apply(events...))
		if len(w.events) == 0 {
			w.advance()
		}
	}
}

// advance does what a run does at the end of a round.
func (w *world) advance() {
	if w.drains {
		w.fly(w.Detach(w.execution))
	} else {
		w.fly(w.Reattach(false))
		w.fly(w.Admit(start))
		for u := w.NextDispatch(); u != nil; u = w.NextDispatch() {
			if id := w.idOf(u); w.started[id] || w.attended >= w.Limits.InFlight {
				w.t.Fatalf("%s is dispatched twice, or beside %d others", id, w.attended)
			}
			w.started[w.idOf(u)] = true
			w.Dispatched(u)
			w.attend(u)
		}
	}
	w.sendRequests()
	if w.drains && len(w.events) == 0 && w.IsQuiet() {
		effects, left := w.TakeBackRequests()
		if w.fly(effects); !left && !w.HasLockRequests() {
			w.continueAsNew()
		}
	}
}

// sendRequests sends requests and releases to the locks and to placement.
func (w *world) sendRequests() {
	for _, q := range w.TakeLockRequests() {
		delete(w.held, q.GetFree().GetClaim())
		delete(w.locking, q.GetFree().GetClaim())
		if a := q.GetAcquire(); a != nil {
			w.locking[a.GetClaim()] = q
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(w.locking)) {
		q, holders := w.locking[claim], int32(0)
		for _, lock := range w.held {
			if lock == q.GetLock() {
				holders++
			}
		}
		if a := q.GetAcquire(); holders < a.GetLimit() {
			delete(w.locking, claim)
			w.held[claim] = q.GetLock()
			granted := &historyv1.Granted{Lock: q.GetLock(), Claim: claim, Asker: a.GetAsker()}
			grant := func() { w.fly(w.Granted(granted, start)) }
			w.todo = append(w.todo, grant, grant) // answers may arrive twice
		}
	}
	req := w.PlaceRequest(w.drains)
	if req == nil {
		return
	}
	for _, ref := range req.GetReleased() {
		delete(w.claims, names.AttemptID(ref.GetTask(), ref.GetClaim()))
	}
	for _, q := range req.GetRequests() {
		w.claims[names.AttemptID(q.GetTask(), q.GetClaim())] = true
		res := &historyv1.PlaceResponse{Assigned: []*historyv1.Assignment{{Task: q.GetTask(), Claim: q.GetClaim(), Node: "n", Queue: "q"}}}
		w.later(func() { w.fly(w.News(res)) })
	}
	w.fly(w.PlaceAnswered(req, &historyv1.PlaceResponse{Epoch: "one"}, w.drains))
}

// continueAsNew continues with what the next execution restores.
func (w *world) continueAsNew() {
	carried := &historyv1.RunState{Tasks: map[string]*historyv1.TaskState{}}
	w.core.Save(carried)
	w.Save(carried)
	before, records, options := w.core, []dag.Record{}, []dag.RestoreOption{dag.WithRunState(carried)}
	for i := range before.Len() {
		records = append(records, dag.RecordOf(carried.Tasks[before.Name(i)]))
		if task := before.Group(i); task >= 0 && before.Group(i-1) != task {
			from, count, _, _ := before.Expansion(task)
			options = append(options, dag.WithExpansion(task, from, count, false))
		}
	}
	w.begin(dag.Restore(w.graph, records, options...))
	w.drains = false
	for i := range w.core.Len() {
		t := carried.Tasks[w.core.Name(i)]
		if _, instances := w.core.Instances(i); t != nil {
			w.records.Restore(i, t, instances > 0)
		}
		w.fly(w.RestoreTask(i, t, start))
	}
	w.fly(w.Restore(carried))
	w.decide(w.core.Start())
}

// check compares all that runs with the limits.
func (w *world) check() {
	groups, tasks := map[int]int32{}, map[int]bool{}
	for id, u := range w.running {
		if u.lock.Name != "" && w.held[id] != names.TaskLock(u.lock.Name) {
			w.t.Fatalf("%s runs without its lock; held are %v", id, w.held)
		}
		for _, i := range u.Members {
			if tasks[i] {
				w.t.Fatalf("%s runs twice", w.core.Name(i))
			}
			tasks[i] = true
		}
		group := w.core.Group(u.Lead)
		groups[group]++
		limit, all := w.core.Definition(u.Lead).GetConcurrency(), w.def.GetMaxParallel()
		if group >= 0 && limit > 0 && groups[group] > limit || all > 0 && len(w.running) > int(all) {
			w.t.Fatalf("%d attempts run, %d of them like %s", len(w.running), groups[group], id)
		}
	}
}

package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
)

func newTestStatus(t interface{ Fatal(...any) }, tasks int) *Status {
	def := &v1.Definition{Name: "board", Tasks: map[string]*v1.TaskDefinition{}}
	for i := range tasks {
		def.Tasks[fmt.Sprintf("t%d", i)] = &v1.TaskDefinition{Type: "shell"}
	}
	graph, err := dag.NewGraph(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	return statusOf(def, graph, dag.New(graph))
}

// statusOf returns the status of a run with a core, in which nothing is in flight.
func statusOf(def *v1.Definition, graph *dag.Graph, core *dag.State) *Status {
	in, records := &historyv1.RunInput{Definition: def}, flight.NewRecords(nil)
	log := eventlog.New(core.Name, func(number int64) string { return fmt.Sprint(number) })
	return New("run-1", in, graph, core, flight.New(flight.Config{Input: in}, core, records), records, log, time.Unix(0, 0))
}

// become gives a task another record in the core, and shows it.
func become(b *Status, i int, rec dag.Record, now time.Time) {
	all := b.core.Records()
	all[i] = rec
	*b.core = *dag.Restore(b.graph, all)
	b.Update(i, now)
}

// save returns the saved state of a run.
func save(b *Status) *historyv1.RunState {
	c := &historyv1.RunState{Tasks: map[string]*historyv1.TaskState{}}
	b.core.Save(c)
	b.units.Save(c)
	b.Save(c)
	return c
}

// watcher pages through answers and keeps their content.
type watcher struct {
	since   int64
	tasks   map[string]*v1.Task
	told    map[string]int // number of times each task was received
	context *structpb.Struct
}

func (w *watcher) ask(t *rapid.T, b *Status, maxBytes int32) (more bool) {
	res, err := b.Answer(&historyv1.StatusRequest{Since: w.since, MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	if res.GetRevision() < w.since || res.GetMore() && res.GetRevision() == w.since {
		t.Fatalf("an answer after revision %d goes to %d, more: %v", w.since, res.GetRevision(), res.GetMore())
	}
	for name, task := range res.GetRun().GetTasks() {
		w.tasks[name] = task
		w.told[name]++
	}
	if c := res.GetRun().GetContext(); c != nil {
		w.context = c
	}
	w.since = res.GetRevision()
	return res.GetMore()
}

// However changes and answers interleave, a watcher receives every change exactly once.
func TestAnswersReturnEachChangeOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		b := newTestStatus(t, n)
		w := &watcher{tasks: map[string]*v1.Task{}, told: map[string]int{}}
		limits := rapid.Int32Range(0, 400)
		fresh := make([]bool, n) // changed since the watcher's last answer
		for i := range fresh {
			fresh[i] = true
		}
		check := func(maxBytes int32) bool {
			before := w.told
			w.told = map[string]int{}
			more := w.ask(t, b, maxBytes)
			for i := range n {
				name := b.graph.Name(i)
				if w.told[name] > 0 && !fresh[i] {
					t.Fatalf("task %s was told again", name)
				}
				fresh[i] = fresh[i] && w.told[name] == 0
				before[name] += w.told[name]
			}
			w.told = before
			return more
		}
		steps := rapid.IntRange(0, 60).Draw(t, "steps")
		for step := range steps {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				check(limits.Draw(t, "bytes"))
			case 1:
				b.SetContext(&structpb.Struct{Fields: map[string]*structpb.Value{"step": structpb.NewNumberValue(float64(step))}})
			default:
				i := rapid.IntRange(0, n-1).Draw(t, "task")
				b.records.At(i).Wait = strings.Repeat("x", step)
				b.Touch(i)
				fresh[i] = true
			}
		}
		for limit := limits.Draw(t, "bytes"); check(limit); {
		}
		for i := range n {
			if name := b.graph.Name(i); !proto.Equal(w.tasks[name], b.taskMessage(i)) {
				t.Fatalf("the watcher knows %v of task %s, the board %v", w.tasks[name], name, b.taskMessage(i))
			}
		}
		if !proto.Equal(w.context, b.run.Context) {
			t.Fatalf("the watcher knows the context %v, the board %v", w.context, b.run.Context)
		}
		if check(0) || len(w.tasks) != n {
			t.Fatal("there is more when nothing has changed")
		}
	})
}

// ending returns the end of a dispatch of the first task.
func ending(node, state string, res *historyv1.ExecuteResponse) flight.End {
	return flight.End{Place: flight.Place{Node: node}, Ended: dag.Ended{Claim: 1, State: state}, Response: res, Outcome: v1.OutcomeDone}
}

// Later changes do not modify an earlier answer.
func TestAnswersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	before, err := b.Answer(&historyv1.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	kept := proto.CloneOf(before)
	become(b, 0, dag.Record{State: v1.TaskAssigned, Node: "a"}, time.Unix(1, 0))
	b.EndAttempt(0, ending("a", v1.TaskCompleted, &historyv1.ExecuteResponse{Result: &v1.TaskResult{Stdout: "done"}}), time.Unix(1, 5))
	become(b, 0, dag.Record{State: v1.TaskCompleted, Node: "a"}, time.Unix(2, 0))
	b.SetContext(&structpb.Struct{})
	if !proto.Equal(before, kept) {
		t.Errorf("an answer has changed from %v to %v", kept, before)
	}
}

// A status that is carried to the next execution is restored unchanged.
func TestStateKeepsTheStatus(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 3)
	become(b, 0, dag.Record{State: v1.TaskQueued, Claim: 1}, time.Unix(1, 0))
	become(b, 0, dag.Record{State: v1.TaskAssigned, Claim: 1, Node: "a"}, time.Unix(2, 0))
	failed := &historyv1.ExecuteResponse{Record: "key", Result: &v1.TaskResult{ExitCode: 3, Stderr: "the end"}}
	end := ending("a", v1.TaskFailed, failed)
	end.Unacknowledged, end.Outcome = true, v1.OutcomeSystem
	b.records.Ended(end)
	b.EndAttempt(0, end, time.Unix(2, 5))
	records := []dag.Record{
		{State: v1.TaskQueued, Claim: 1, Node: "a", Attempt: 1, ExitCode: 3, Backoff: true, Failure: dag.Failure{State: v1.TaskFailed, Reason: "exit_code", Error: "exit code 3"}},
		{State: v1.TaskSkipped, Reason: v1.ReasonUpstream, Error: "a parent failed", ExitCode: -1},
		{State: v1.TaskPending, ExitCode: -1},
	}
	for i, rec := range records {
		become(b, i, rec, time.Unix(3, 0))
	}
	b.SetRetryTime(0, time.Unix(4, 0), time.Unix(3, 0))
	b.records.At(0).Queue(time.Unix(4, 7))

	runState := save(b)
	if len(runState.GetTasks()) != 2 {
		t.Errorf("%d tasks continue, want those 2 that are not pending", len(runState.GetTasks()))
	}
	next := newTestStatus(t, 3)
	*next.core = *dag.Restore(b.graph, records)
	for i := range records {
		if task := runState.GetTasks()[b.graph.Name(i)]; task != nil {
			next.records.Restore(i, task, false)
			next.Restore(i, task)
			if got := dag.RecordOf(task); got != records[i] {
				t.Errorf("task %d: record %+v, want %+v", i, got, records[i])
			}
		}
		want := proto.CloneOf(b.taskMessage(i))
		if next.records.Of(i).ResultKey != "" {
			// The whole result is in the store.
			want.Result.Stderr, want.Result.Output = "", nil
			want.Result.StdoutTruncated, want.Result.StderrTruncated = true, true
		}
		if got := next.taskMessage(i); !proto.Equal(got, want) {
			t.Errorf("task %d: %v, want %v", i, got, want)
		}
	}
	e, own := next.entries[0], next.records.Of(0)
	if own.ResultKey != "key" || e.claim != 1 || !slices.Equal(own.Unacknowledged, []int32{0}) || own.Avoid != "a" || !own.QueuedAt.Equal(time.Unix(4, 7)) {
		t.Errorf("the first task continues as %+v, %+v", e, own)
	}
}

// A run that ends early, and waits for its tasks, shows why.
func TestRunThatIsEndingShowsWhy(t *testing.T) {
	t.Parallel()
	for want, event := range map[string]dag.Event{
		"is ending: cancelled by ann: wrong host":            dag.Cancel{Error: "cancelled by ann: wrong host"},
		"is ending: the run was cancelled":                   dag.Cancel{},
		"is ending: the run did not end within its deadline": dag.Abort{State: v1.RunFailed, Reason: v1.ReasonDeadline, Error: "the run did not end within its deadline"},
	} {
		s := newTestStatus(t, 1)
		s.SetRunState(v1.RunRunning)
		s.core.Apply(dag.Placed{Task: 0, Claim: s.core.Task(0).Claim, Node: "a"})
		s.core.Apply(event)
		if res, _ := s.Answer(&historyv1.StatusRequest{}); res.GetRun().GetError() != want {
			t.Errorf("%q, want %q", res.GetRun().GetError(), want)
		}
	}
}

// A held task and a paused run show who did it and why. The next execution shows the same.
func TestHoldAndPauseShowWhoAndWhy(t *testing.T) {
	t.Parallel()
	s := newTestStatus(t, 1)
	s.records.At(0).Held, s.records.At(0).HeldBy = true, "by ann: not yet"
	s.SetPausedBy("paused by bob: lunch")
	s.SetRunState(v1.RunPaused)
	res, _ := s.Answer(&historyv1.StatusRequest{})
	shown := res.GetRun()
	if task := shown.GetTasks()[s.core.Name(0)].GetError(); task != "by ann: not yet" || shown.GetError() != "paused by bob: lunch" {
		t.Errorf("the task shows %q, the run %q", task, shown.GetError())
	}
	if c := save(s); c.GetHeldBy()[s.core.Name(0)] != "by ann: not yet" || c.GetPausedBy() != "paused by bob: lunch" {
		t.Errorf("the next execution is given %v", c)
	}
	if s.records.At(0).HeldBy = ""; s.text(0) != "by a person" {
		t.Errorf("the task shows %q", s.text(0))
	}
}

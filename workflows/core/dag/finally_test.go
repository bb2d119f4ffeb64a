package dag_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"testing"

	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// autopilot answers every decision of a round, in order. How an attempt ends follows from the name of its task and its number.
type autopilot struct {
	t    *rapid.T
	g    *dag.Graph
	s    *dag.State
	seed uint64
}

func newAutopilot(t *rapid.T, def *v1.Definition, seed uint64) *autopilot {
	g, err := dag.NewGraph(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &autopilot{t: t, g: g, s: dag.New(g), seed: seed}
}

// chooses returns whether something that happens in n of 100 cases happens to a task.
func (p *autopilot) chooses(n uint32, what string, i int) bool {
	h := fnv.New32a()
	fmt.Fprint(h, p.seed, what, p.s.Name(i), p.s.Task(i).Attempt)
	return h.Sum32()%100 < n
}

// answers returns what a round of decisions comes to.
func (p *autopilot) answers(d dag.Decisions) (events []dag.Event) {
	for _, i := range d.Evaluate {
		events = append(events, dag.Evaluated{Task: i, Value: p.chooses(60, "condition", i)})
	}
	for _, i := range d.Expand {
		events = append(events, dag.Expanded{Task: i, Count: 2})
	}
	for _, b := range d.Backoff {
		events = append(events, dag.BackoffOver{Task: b.Task, Claim: p.s.Task(b.Task).Claim})
	}
	for _, i := range d.Place {
		e := dag.Ended{Task: i, Claim: p.s.Task(i).Claim, State: v1.TaskCompleted}
		if p.chooses(30, "fails", i) {
			e.State, e.ExitCode = v1.TaskFailed, 1
		}
		events = append(events, dag.Placed{Task: i, Claim: e.Claim, Node: "n"}, e)
	}
	return events
}

// restored continues with a restored state, as the next execution of a run does.
func (p *autopilot) restored() dag.Decisions {
	m := &simulation{t: p.t, g: p.g, s: p.s}
	records, options := m.saved()
	p.s = dag.Restore(p.g, records, options...)
	return p.s.Start()
}

// Whatever happens to the tasks of a run, those of finally start after all of them, and run as if they were a run of their own.
func TestFinallyIsARunOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := drawDefinition(t, "continue", "halt")
		drawFanOut(t, def)
		last := drawDefinition(t, def.FailurePolicy)
		def.Finally = map[string]*v1.TaskDefinition{}
		alone := &v1.Definition{FailurePolicy: def.FailurePolicy, Tasks: def.Finally}
		for name, task := range last.Tasks {
			for i, parent := range task.DependsOn {
				task.DependsOn[i] = "last-" + parent
			}
			def.Finally["last-"+name] = task
		}
		seed := rapid.Uint64().Draw(t, "seed")
		p, single := newAutopilot(t, def, seed), newAutopilot(t, alone, seed)
		interrupt := rapid.IntRange(0, 8).Draw(t, "interrupted in round")
		interruption := rapid.SampledFrom([]dag.Event{nil, dag.Cancel{}, dag.Abort{State: "failed", Reason: "deadline"}}).Draw(t, "interruption")
		from, _ := p.g.Finally()
		d := p.s.Start()
		for round := 0; d.End == nil; round++ {
			if chance(t, 10, "continued as new") {
				d = p.restored()
			}
			events := p.answers(d)
			if round == interrupt && interruption != nil {
				events = append([]dag.Event{interruption}, events...)
			}
			if len(events) == 0 {
				t.Fatalf("the run hangs: %+v", p.s.Records())
			}
			d = p.s.Apply(events...)
			for i := range from {
				for k := from; k < p.g.Len(); k++ {
					if !v1.IsTaskTerminal(p.s.Task(i).State) && p.s.Task(k).State != v1.TaskPending {
						t.Fatalf("%s is %s while %s is %s", p.s.Name(k), p.s.Task(k).State, p.s.Name(i), p.s.Task(i).State)
					}
				}
			}
		}
		e := single.s.Start()
		for e.End == nil {
			e = single.s.Apply(single.answers(e)...)
		}
		for i := range single.g.Len() {
			got, want := p.s.Task(from+i), single.s.Task(i)
			if got.State != want.State || got.Reason != want.Reason || got.Attempt != want.Attempt || p.g.Name(from+i) != single.g.Name(i) {
				t.Fatalf("%s ends as %+v, alone as %+v", p.g.Name(from+i), got, want)
			}
		}
		end := p.s.TasksEnd()
		want := end.State
		if want == v1.RunCompleted {
			want = e.End.State
		}
		if e.End.State != v1.RunCancelled && d.End.State != want {
			t.Fatalf("the run ends as %+v; its tasks as %+v, finally alone as %+v", d.End, end, e.End)
		}
	})
}

// withFinally returns a run of a, and of b and c in finally.
func withFinally() *v1.Definition {
	return &v1.Definition{
		Tasks:   map[string]*v1.TaskDefinition{"a": {}},
		Finally: map[string]*v1.TaskDefinition{"b": {Retry: once()}, "c": {DependsOn: []string{"b"}, OnFailure: "run"}},
	}
}

func TestCancellationStaysWithinAPhase(t *testing.T) {
	t.Parallel()
	l, _ := start(t, withFinally())
	l.placed("a")
	l.s.Apply(dag.Cancel{Error: "enough"}, l.end("a", dag.Ended{State: v1.TaskCancelled}))
	if !l.s.InFinally() || !l.s.Cancelled() || l.s.IsEnding() {
		t.Fatalf("in finally: %v, cancelled: %v, ending: %v", l.s.InFinally(), l.s.Cancelled(), l.s.IsEnding())
	}
	l.placed("b")
	l.s.Apply(dag.Cancel{}, dag.Abort{State: "failed", Reason: "deadline"})
	l.want(map[string]string{"a": "cancelled/run_cancelled", "b": "assigned/", "c": "pending/"})
	d := l.s.Apply(dag.Cancel{Now: true, Error: "now"})
	l.want(map[string]string{"b": "assigned/", "c": "cancelled/run_cancelled"})
	if names := l.names(d.Stop); len(names) != 1 || names[0] != "b" {
		t.Errorf("stopped are %v", names)
	}
	if end := l.s.Apply(l.end("b", dag.Ended{State: v1.TaskCancelled})).End; end == nil || end.State != v1.RunCancelled || end.Error != "enough" {
		t.Errorf("the run ends as %+v", end)
	}
}

// A run that has not begun has nothing to clean up.
func TestCancellationBeforeTheStartLeavesOutFinally(t *testing.T) {
	t.Parallel()
	g, err := dag.NewGraph(withFinally(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := dag.New(g)
	d := s.Apply(dag.Abort{State: v1.RunRejected, Reason: v1.ReasonRejected})
	if d.End == nil || d.End.State != v1.RunRejected || len(d.Place) > 0 || s.Count(v1.TaskRejected) != 3 {
		t.Errorf("%+v, %+v", d, s.Records())
	}
}

func TestFinallyBeginsWithoutCancelledTasksOnSilentNodes(t *testing.T) {
	t.Parallel()
	l, _ := start(t, withFinally())
	l.placed("a")
	l.s.Apply(dag.BeginFinally{})
	if l.s.InFinally() {
		t.Fatal("finally begins although nothing was cancelled")
	}
	l.s.Apply(dag.Cancel{})
	if d := l.s.Apply(dag.BeginFinally{}); len(d.Place) != 1 || !l.s.InFinally() {
		t.Fatalf("%+v", d)
	}
	var left historyv1.RunState
	left.Tasks = map[string]*historyv1.TaskState{}
	if l.s.Save(&left); !left.GetFinally().GetBegan() {
		t.Errorf("left is %v", &left)
	}
	l.placed("b")
	l.s.Apply(l.end("b", dag.Ended{State: v1.TaskCompleted}))
	l.placed("c")
	if d := l.s.Apply(l.end("c", dag.Ended{State: v1.TaskCompleted})); d.End != nil {
		t.Errorf("the run ends while a may still run: %+v", d.End)
	}
	if d := l.s.Apply(l.end("a", dag.Ended{State: v1.TaskLost})); d.End == nil || d.End.State != v1.RunCancelled {
		t.Errorf("the end is %+v", d.End)
	}
}

func TestEveryGenerationRunsFinallyAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		again dag.Rerun
		place string
		state string
	}{
		"what failed":  {dag.Rerun{Failed: true}, "a", v1.RunCompleted},
		"from a task":  {dag.Rerun{From: []string{"a"}}, "a", v1.RunCompleted},
		"only finally": {dag.Rerun{Finally: true}, "b", v1.RunFailed},
	} {
		def := withFinally()
		def.Tasks["a"].Retry = once()
		s, end := play(t, def, script{attempts: map[string][]dag.Ended{"a": {ended(v1.TaskFailed)}, "b": {ended(v1.TaskFailed)}}})
		if end.State != v1.RunFailed || end.Reason != v1.ReasonTaskFailed || end.Error != `task "a" failed: e (attempt 0 on node-a); in finally, task "b" failed: e (attempt 0 on node-a)` {
			t.Fatalf("%s: the run ended as %+v", name, end)
		}
		if err := s.MayRetry(0); !errors.Is(err, dag.ErrInFinally) {
			t.Errorf("%s: a can be retried in finally: %v", name, err)
		}
		g, _ := dag.NewGraph(def, nil)
		next, err := dag.Reopen(g, s.Records(), test.again)
		if err != nil {
			t.Fatal(err)
		}
		l := live{t, g, next}
		if got := l.names(next.Start().Place); len(got) != 1 || got[0] != test.place {
			t.Fatalf("%s: the next generation starts %v", name, got)
		}
		var d dag.Decisions
		for _, task := range []string{"a", "b", "c"} {
			if i, _ := l.index(task); next.Task(i).State == v1.TaskQueued {
				l.placed(task)
				d = next.Apply(l.end(task, dag.Ended{State: v1.TaskCompleted}))
			}
		}
		if d.End == nil || d.End.State != test.state {
			t.Errorf("%s: the next generation ends as %+v", name, d.End)
		}
	}
}

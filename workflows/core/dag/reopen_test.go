package dag_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// A dead letter that is requeued after the end and succeeds leaves the run as if it had succeeded at once, except for tasks
// that ran in the meantime.
func TestReopenedRunEndsAsIfTheTaskHadSucceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := drawDefinition(t, "", "continue")
		seed := rapid.Uint64().Draw(t, "seed")
		first := worked{def: def, seed: seed, attempts: map[string][]dag.Ended{}, done: map[string][2]string{}}
		m := simulate(t, def, seed, nil)
		for i := range m.g.Len() {
			if chance(t, 40, "fails") {
				first.attempts[m.g.Name(i)] = slices.Repeat([]dag.Ended{{State: "failed", Reason: "r", ExitCode: 1}}, 10)
			}
		}
		m.playOut(first.attempts)
		dead := m.deadLetters()
		if len(dead) == 0 {
			t.Skip("nothing to put back")
		}
		put := rapid.SliceOfNDistinct(rapid.SampledFrom(dead), 1, len(dead), rapid.ID).Draw(t, "put back")

		// The ends follow from the tasks that have run, from the requeued task, which succeeds, and from the same rules as
		// before.
		second := worked{def: def, seed: seed, attempts: map[string][]dag.Ended{}, done: map[string][2]string{}}
		before := m.s.Records()
		for i, rec := range before {
			name := m.g.Name(i)
			switch {
			case slices.Contains(put, i) && slices.ContainsFunc(ancestors(def, name), func(a string) bool {
				k, _ := m.g.Index(a)
				return slices.Contains(put, k)
			}): // decided anew
			case slices.Contains(put, i):
				second.done[name] = [2]string{"completed", "success"}
			case rec.State != "skipped":
				effect := "failure"
				if rec.State == "completed" || def.Tasks[name].ContinueOnError {
					effect = "success"
				}
				second.done[name] = [2]string{rec.State, effect}
			default:
				second.attempts[name] = first.attempts[name]
			}
		}
		s, err := dag.Reopen(m.g, before, dag.Rerun{Tasks: named(m.g, append(put, put...))})
		if err != nil {
			t.Fatal(err)
		}
		m.s, m.end, m.final = s, nil, map[int]dag.Record{}
		m.take(before, m.s.Start())
		for _, i := range put {
			rec := s.Task(i)
			if rec.State == "pending" && rec.Claim == before[i].Claim {
				continue
			}
			if rec.State != "queued" || rec.Attempt != 0 || rec.Claim != before[i].Claim+1 || rec.Node != "" {
				t.Fatalf("put back, the task is %+v", rec)
			}
		}
		m.playOut(second.attempts)
		run := "completed"
		for i, rec := range m.s.Records() {
			name := m.g.Name(i)
			state, effect := second.task(name)
			if state != rec.State {
				t.Fatalf("task %s was %+v, is %+v, should be %s", name, before[i], rec, state)
			}
			if has := before[i]; has.State != "skipped" && !slices.Contains(put, i) && has != rec {
				t.Fatalf("task %s had run as %+v, and is now %+v", name, has, rec)
			}
			if effect == "failure" && state != "skipped" && state != "cancelled" {
				run = "failed"
			}
		}
		if m.end.State != run {
			t.Fatalf("the run ended %+v, should be %s", m.end, run)
		}
	})
}

func named(g *dag.Graph, tasks []int) []string {
	var list []string
	for _, i := range tasks {
		list = append(list, g.Name(i))
	}
	return list
}

// playOut runs to the end of the run. The attempts of a task end in the given order, and further ones complete.
func (m *simulation) playOut(attempts map[string][]dag.Ended) {
	played := make(map[int]int)
	for m.end == nil {
		events := m.answer(func(i int) dag.Ended {
			n := played[i]
			played[i]++
			if ends := attempts[m.g.Name(i)]; n < len(ends) {
				return ends[n]
			}
			return dag.Ended{State: "completed"}
		})
		if len(events) == 0 {
			m.t.Fatalf("the run hangs: %+v", m.s.Records())
		}
		m.apply(events...)
	}
}

func deadNow() dag.Ended {
	return dag.Ended{State: "failed", Reason: "exit_code", Error: "exit code 1", ExitCode: 1}
}

// oneRetry returns a retry policy that makes the second failure a dead letter.
func oneRetry() *v1.RetryPolicy {
	one := int32(1)
	return &v1.RetryPolicy{MaxRetries: &one}
}

// die lets a task fail until it is a dead letter.
func (l live) die(name string) dag.Decisions {
	l.t.Helper()
	l.placed(name)
	l.s.Apply(l.end(name, deadNow()))
	i, claim := l.index(name)
	l.s.Apply(dag.BackoffOver{Task: i, Claim: claim})
	l.placed(name)
	return l.s.Apply(l.end(name, deadNow()))
}

func (l live) retry(name string) dag.Decisions {
	l.t.Helper()
	i, _ := l.index(name)
	return l.s.Apply(dag.Retry{Task: i})
}

// A task that was skipped because of a dead letter waits for it again. A task that ran does not run twice.
func TestRetryOfADeadLetterRunsOnlyWhatWasSkipped(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"build":  {Retry: oneRetry()},
		"test":   {DependsOn: []string{"build"}},
		"deploy": {DependsOn: []string{"test"}},
		"notify": {DependsOn: []string{"build"}, OnFailure: "run"},
		"report": {DependsOn: []string{"notify", "deploy"}, OnFailure: "run"},
		"other":  {},
	}})
	l.placed("other")
	l.die("build")
	l.placed("notify")
	l.s.Apply(l.end("notify", ended("completed")))
	l.placed("report") // runs while a task above it is requeued
	if rec := record(t, l.s, "build"); rec.State != "dead_letter" || rec.Attempt != 1 || rec.Claim != 2 {
		t.Fatalf("build is %+v", rec)
	}
	d := l.retry("build")
	if diff := cmp.Diff([]string{"build"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	if rec := record(t, l.s, "build"); rec != (dag.Record{State: "queued", Claim: 3, ExitCode: -1, Retried: true}) {
		t.Errorf("build is %+v", rec)
	}
	if d := l.retry("build"); len(d.Changed)+len(d.Place) > 0 {
		t.Errorf("put back again: %+v", d)
	}
	l.s.Apply(l.end("report", ended("completed")))
	for task, state := range map[string]string{"test": "pending", "deploy": "pending", "notify": "completed", "report": "completed"} {
		if rec := record(t, l.s, task); rec.State != state {
			t.Errorf("%s is %+v, want %s", task, rec, state)
		}
	}
	for _, task := range []string{"build", "test", "deploy"} {
		l.placed(task)
		l.s.Apply(l.end(task, ended("completed")))
	}
	d = l.s.Apply(l.end("other", ended("completed")))
	if d.End == nil || d.End.State != "completed" || l.s.FirstFailure() != -1 {
		t.Errorf("end %+v, first failure %d", d.End, l.s.FirstFailure())
	}
	for i, rec := range l.s.Records() {
		if rec.State != "completed" || rec.Retried {
			t.Errorf("%s is %+v", l.g.Name(i), rec)
		}
	}
}

// A halt ends with its cause. With another failure left, only the task itself starts.
func TestRetryInAHaltedRun(t *testing.T) {
	def := &v1.Definition{FailurePolicy: "halt", Tasks: map[string]*v1.TaskDefinition{
		"a": {Retry: oneRetry()}, "after-a": {DependsOn: []string{"a"}},
		"b": {Retry: oneRetry()}, "c": {}, "after-c": {DependsOn: []string{"c"}},
	}}
	l, _ := start(t, def)
	l.placed("b", "c")
	l.s.Apply(l.end("b", deadNow()))
	i, claim := l.index("b")
	l.s.Apply(dag.BackoffOver{Task: i, Claim: claim})
	l.placed("b")
	l.die("a")
	l.s.Apply(l.end("b", deadNow()))
	if rec := record(t, l.s, "b"); rec.State != "dead_letter" {
		t.Fatalf("b is %+v", rec)
	}
	states := func() map[string]string {
		m := map[string]string{}
		for i, rec := range l.s.Records() {
			m[l.g.Name(i)] = rec.State + "/" + rec.Reason
		}
		return m
	}
	want := map[string]string{"a": "dead_letter/exit_code", "after-a": "skipped/halt", "b": "dead_letter/exit_code", "c": "assigned/", "after-c": "skipped/halt"}
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Fatalf("halted (-want +got):\n%s", diff)
	}
	if d := l.retry("a"); !slices.Equal(l.names(d.Place), []string{"a"}) {
		t.Errorf("%+v", d)
	}
	want["a"] = "queued/"
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Errorf("one put back (-want +got):\n%s", diff)
	}

	l, _ = start(t, def)
	l.placed("b", "c")
	l.die("a")
	if diff := cmp.Diff("skipped/halt", states()["after-c"]); diff != "" {
		t.Fatalf("halted (-want +got):\n%s", diff)
	}
	l.retry("a")
	want = map[string]string{"a": "queued/", "after-a": "pending/", "b": "assigned/", "c": "assigned/", "after-c": "pending/"}
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Errorf("the halt is over (-want +got):\n%s", diff)
	}
}

func TestReopenRefuses(t *testing.T) {
	g, err := dag.NewGraph(&v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}, "b": {}, "each": fanned(0)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	records := []dag.Record{
		{State: "dead_letter", Claim: 4, Attempt: 3}, {State: "failed", Claim: 1}, {State: "failed"},
		{State: "completed", Claim: 1}, {State: "dead_letter", Claim: 2},
	}
	for name, tt := range map[string]struct {
		tasks   []string
		options []dag.RestoreOption
		want    error
	}{
		"a failure that is none": {[]string{"a", "b"}, nil, dag.ErrNotDeadLetter},
		"no task":                {[]string{"c"}, nil, dag.ErrUnknownTask},
		"no task either":         {[]string{"a[0]"}, nil, dag.ErrUnknownTask},
		"a cancelled run":        {[]string{"a"}, []dag.RestoreOption{dag.WithRunState(&historyv1.RunState{Cancelled: true})}, dag.ErrCancelled},
		"a dead letter":          {[]string{"a"}, nil, nil},
		"an instance":            {[]string{"each[1]"}, []dag.RestoreOption{dag.WithExpansion(2, 0, 2, false)}, nil},
		"one that completed":     {[]string{"each[0]"}, []dag.RestoreOption{dag.WithExpansion(2, 0, 2, false)}, dag.ErrNotDeadLetter},
		"one that is elsewhere":  {[]string{"each[1]"}, []dag.RestoreOption{dag.WithExpansion(2, 0, 2, true)}, dag.ErrUnknownTask},
	} {
		s, err := dag.Reopen(g, records, dag.Rerun{Tasks: tt.tasks}, tt.options...)
		if !errors.Is(err, tt.want) || (s == nil) != (err != nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	for _, name := range []string{"c", "each[1]", ""} {
		if _, err := dag.Reopen(g, records, dag.Rerun{From: []string{name}}, dag.WithExpansion(2, 0, 2, false)); !errors.Is(err, dag.ErrUnknownTask) {
			t.Errorf("from %q: %v", name, err)
		}
	}
}

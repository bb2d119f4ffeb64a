package dag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// A live is a run for tests that advance it step by step, by name.
type live struct {
	t *testing.T
	g *dag.Graph
	s *dag.State
}

func start(t *testing.T, def *v1.Definition) (live, dag.Decisions) {
	t.Helper()
	g, err := dag.NewGraph(def, mentions(def))
	if err != nil {
		t.Fatal(err)
	}
	l := live{t, g, dag.New(g)}
	return l, l.s.Start()
}

func (l live) index(name string) (int, int32) {
	l.t.Helper()
	i, ok := l.s.Index(name)
	if !ok {
		l.t.Fatalf("no task %q", name)
	}
	return i, l.s.Task(i).Claim
}

func (l live) placed(names ...string) {
	l.t.Helper()
	for _, name := range names {
		i, claim := l.index(name)
		l.s.Apply(dag.Placed{Task: i, Claim: claim, Node: "node-a"})
	}
}

func (l live) end(name string, e dag.Ended) dag.Event {
	l.t.Helper()
	e.Task, e.Claim = l.index(name)
	return e
}

func (l live) names(tasks []int) []string {
	var names []string
	for _, i := range tasks {
		names = append(names, l.s.Name(i))
	}
	return names
}

// want compares the states of tasks, as "state/reason".
func (l live) want(states map[string]string) {
	l.t.Helper()
	got := make(map[string]string)
	for name := range states {
		i, _ := l.index(name)
		rec := l.s.Task(i)
		got[name] = rec.State + "/" + rec.Reason
	}
	if diff := cmp.Diff(states, got); diff != "" {
		l.t.Errorf("states (-want +got):\n%s", diff)
	}
}

func tasks(defs map[string]*v1.TaskDefinition) *v1.Definition {
	return &v1.Definition{FailurePolicy: "halt", Tasks: defs}
}

func TestHalt(t *testing.T) {
	l, _ := start(t, tasks(map[string]*v1.TaskDefinition{
		"backoff":   {},
		"cleanup":   {DependsOn: []string{"later"}, OnFailure: "run"},
		"asked":     {Condition: "x"},
		"excused":   {ContinueOnError: true, Retry: once()},
		"failing":   {},
		"first":     {Retry: once()},
		"later":     {DependsOn: []string{"running"}},
		"moving":    {},
		"again":     {},
		"queued":    {},
		"running":   {},
		"stubborn":  {OnFailure: "run"},
		"undecided": {Condition: "x", OnFailure: "run"},
	}))
	l.placed("backoff", "excused", "failing", "first", "moving", "again", "running", "stubborn")
	l.s.Apply(l.end("excused", ended("failed")))
	l.s.Apply(l.end("backoff", dag.Ended{State: "lost", Reason: "node_lost"}))
	l.s.Apply(l.end("again", dag.Ended{State: "killed_oom", Reason: "oom"}))
	again, claim := l.index("again")
	l.s.Apply(dag.BackoffOver{Task: again, Claim: claim})
	l.want(map[string]string{"excused": "failed/r", "queued": "queued/", "later": "pending/", "again": "queued/oom"})

	d := l.s.Apply(l.end("first", ended("failed")))
	l.want(map[string]string{
		"backoff": "lost/node_lost", "again": "killed_oom/oom", "asked": "skipped/halt", "queued": "skipped/halt",
		"later": "skipped/halt", "running": "assigned/", "undecided": "pending/", "cleanup": "pending/",
	})
	if diff := cmp.Diff([]string{"again", "queued"}, l.names(d.Withdraw)); diff != "" {
		t.Errorf("withdrawn (-want +got):\n%s", diff)
	}
	if len(d.Place)+len(d.Stop)+len(d.Backoff)+len(d.Evaluate) != 0 || d.End != nil {
		t.Errorf("halting decides %+v", d)
	}
	asked, _ := l.index("asked")
	undecided, _ := l.index("undecided")
	d = l.s.Apply(dag.Evaluated{Task: asked, Value: true}, dag.Evaluated{Task: undecided, Value: true})
	if diff := cmp.Diff([]string{"undecided"}, l.names(d.Place)); diff != "" {
		t.Errorf("placed (-want +got):\n%s", diff)
	}

	l.s.Apply(l.end("failing", dag.Ended{State: "failed", Reason: "timeout"}), l.end("moving", dag.Ended{State: "moved"}))
	l.want(map[string]string{"failing": "failed/timeout", "moving": "skipped/halt"})

	// Tasks that may start under halt are retried and moved as usual.
	if d = l.s.Apply(l.end("stubborn", ended("failed"))); len(d.Backoff) != 1 {
		t.Errorf("no back-off: %+v", d)
	}
	stubborn, claim := l.index("stubborn")
	if d = l.s.Apply(dag.BackoffOver{Task: stubborn, Claim: claim}); len(d.Place) != 1 {
		t.Errorf("no repetition: %+v", d)
	}
	l.placed("stubborn", "undecided")
	if d = l.s.Apply(l.end("undecided", dag.Ended{State: "moved"})); len(d.Place) != 1 {
		t.Errorf("not placed again: %+v", d)
	}
	l.placed("undecided")

	// The clean-up waits for everything that still runs above it, not only for the skipped task between.
	d = l.s.Apply(l.end("running", ended("completed")))
	if diff := cmp.Diff([]string{"cleanup"}, l.names(d.Place)); diff != "" {
		t.Errorf("placed (-want +got):\n%s", diff)
	}
	l.placed("cleanup")
	d = l.s.Apply(
		l.end("cleanup", ended("completed")), l.end("stubborn", ended("completed")), l.end("undecided", ended("completed")),
	)
	want := &dag.End{
		State: "failed", Reason: "task_failed", Task: l.s.FirstFailure(),
		Error: `task "first" failed: e (attempt 0 on node-a), and 3 more`,
	}
	if diff := cmp.Diff(want, d.End); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
}

// An attempt that is handed back under halt is not placed again. If it was a retry, the task ends with the failure before it.
func TestMovedTaskUnderHaltEndsWithItsEarlierFailure(t *testing.T) {
	l, _ := start(t, tasks(map[string]*v1.TaskDefinition{"first": {Retry: once()}, "moving": {}}))
	l.placed("first", "moving")
	l.s.Apply(l.end("moving", dag.Ended{State: "failed", Reason: "exit_code", Error: "exit code 7", ExitCode: 7}))
	moving, claim := l.index("moving")
	l.s.Apply(dag.BackoffOver{Task: moving, Claim: claim})
	l.placed("moving")
	l.want(map[string]string{"moving": "assigned/"})
	d := l.s.Apply(l.end("first", ended("failed")), l.end("moving", dag.Ended{State: "moved", Reason: "no_room", ExitCode: -1}))
	want := dag.Record{State: "failed", Reason: "exit_code", Error: "exit code 7", ExitCode: 7, Node: "node-a", Claim: 2}
	if diff := cmp.Diff(want, l.s.Task(moving)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if d.End == nil {
		t.Error("the run continues")
	}
}

// A task that is placed and withdrawn by the same call is neither requested nor withdrawn.
func TestDecisionsOfOneCallAreNetted(t *testing.T) {
	l, _ := start(t, tasks(map[string]*v1.TaskDefinition{
		"a": {}, "b": {DependsOn: []string{"a"}}, "c": {Retry: once()},
	}))
	l.placed("a", "c")
	d := l.s.Apply(l.end("a", ended("completed")), l.end("c", ended("failed")))
	if len(d.Place)+len(d.Withdraw) != 0 {
		t.Errorf("decisions %+v", d)
	}
	l.want(map[string]string{"b": "skipped/halt"})
}

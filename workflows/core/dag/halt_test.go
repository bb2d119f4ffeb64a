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

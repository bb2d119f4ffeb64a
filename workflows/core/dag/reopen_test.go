package dag_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

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

// TestReopenRunsWholeWorkspaces checks that completed tasks run again if a task runs again with which they share a workspace, whose
// folder is gone.
func TestReopenRunsWholeWorkspaces(t *testing.T) {
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"checkout": {Workspace: "w"}, "build": {Workspace: "w", DependsOn: []string{"checkout"}}, "report": {DependsOn: []string{"checkout"}},
		"alone": {}, "other": {Workspace: "o"}, "publish": {Workspace: "o", DependsOn: []string{"build", "other"}},
	}, Finally: map[string]*v1.TaskDefinition{"tidy": {Workspace: "o"}}}
	g, err := dag.NewGraph(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		states map[string]string // of tasks that have not completed
		again  dag.Rerun
		want   string
	}{
		"a failure in a workspace":      {map[string]string{"build": "failed", "publish": "skipped"}, dag.Rerun{Failed: true}, "build checkout other publish report tidy"},
		"a dead letter":                 {map[string]string{"build": "dead_letter", "publish": "skipped"}, dag.Rerun{Tasks: []string{"build"}}, "build checkout other publish report tidy"},
		"a failure without a workspace": {map[string]string{"alone": "failed"}, dag.Rerun{Failed: true}, "alone other publish tidy"},
		"finally":                       {nil, dag.Rerun{Finally: true}, "tidy"},
	} {
		var records []dag.Record
		for i := range g.Len() {
			records = append(records, dag.Record{State: cmp.Or(test.states[g.Name(i)], v1.TaskCompleted), Claim: 1})
		}
		s, err := dag.Reopen(g, records, test.again)
		if err != nil {
			t.Fatal(err)
		}
		var again []string
		for i := range g.Len() {
			if s.Task(i).State != v1.TaskCompleted {
				again = append(again, g.Name(i))
			}
		}
		slices.Sort(again)
		if got := strings.Join(again, " "); got != test.want {
			t.Errorf("%s: %s run again, want %s", name, got, test.want)
		}
	}
}

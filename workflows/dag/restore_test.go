package dag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

func TestRestoreFillsInWhatIsMissing(t *testing.T) {
	def := &v1.Definition{FailurePolicy: "halt", Tasks: map[string]*v1.TaskDefinition{"a": {}, "b": {}, "c": {}, "d": {}}}
	g, err := dag.NewGraph(def)
	if err != nil {
		t.Fatal(err)
	}
	s := dag.Restore(g, []dag.Record{
		{State: "running", Claim: 1, Backoff: true, ExitCode: -1},
		{State: "queued", Reason: "exit_code", Error: "exit code 1", ExitCode: 1, Attempt: 1, Claim: 1, Backoff: true},
		{State: "queued", Claim: 3, ExitCode: -1},
	})
	if got := s.FirstFailure(); got != -1 {
		t.Errorf("first failure is %d", got)
	}
	d := s.Start()
	want := dag.Decisions{Place: []int{2, 3}, Backoff: []dag.Backoff{{Task: 1, Delay: 1e9}}, Changed: []int{3}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	records := []dag.Record{
		{State: "running", Claim: 1, ExitCode: -1},
		{
			State: "queued", Reason: "exit_code", Error: "exit code 1", ExitCode: 1, Attempt: 1, Claim: 1, Backoff: true,
			Failure: dag.Failure{State: "failed", Reason: "exit_code", Error: "exit code 1"},
		},
		{State: "queued", Claim: 3, ExitCode: -1},
		{State: "queued", Claim: 1, ExitCode: -1},
	}
	if diff := cmp.Diff(records, s.Records()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	// Asked again, it says the same again, under the same claims.
	want.Changed = nil
	if diff := cmp.Diff(want, s.Start()); diff != "" {
		t.Errorf("decisions, again (-want +got):\n%s", diff)
	}
}

func TestRestoreFindsTheFirstFailure(t *testing.T) {
	def := &v1.Definition{FailurePolicy: "halt", Tasks: map[string]*v1.TaskDefinition{
		"a": {}, "b": {ContinueOnError: true}, "c": {}, "d": {}, "e": {},
	}}
	g, err := dag.NewGraph(def)
	if err != nil {
		t.Fatal(err)
	}
	failed := dag.Record{State: "failed"}
	records := []dag.Record{{State: "completed"}, failed, failed, failed, {State: "queued", Claim: 1}}
	for name, tt := range map[string]struct {
		options []dag.RestoreOption
		want    int
	}{
		"told":          {[]dag.RestoreOption{dag.WithFirstFailure(3)}, 3},
		"not told":      {nil, 2},
		"none":          {[]dag.RestoreOption{dag.WithFirstFailure(-1)}, 2},
		"not a failure": {[]dag.RestoreOption{dag.WithFirstFailure(0)}, 2},
		"excused":       {[]dag.RestoreOption{dag.WithFirstFailure(1)}, 2},
		"no task":       {[]dag.RestoreOption{dag.WithFirstFailure(9)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := dag.Restore(g, records, tt.options...)
			d := s.Start()
			if d.End == nil || d.End.Task != tt.want || s.FirstFailure() != tt.want {
				t.Errorf("end %+v, first failure %d, want %d", d.End, s.FirstFailure(), tt.want)
			}
			if rec := s.Task(4); rec.State != "skipped" || rec.Reason != "halt" {
				t.Errorf("what may not start any more is %+v", rec)
			}
		})
	}
}

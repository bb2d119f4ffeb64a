package dag_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

func TestRestoreFillsInWhatIsMissing(t *testing.T) {
	def := &v1.Definition{FailurePolicy: "halt", Tasks: map[string]*v1.TaskDefinition{"a": {}, "b": {}, "c": {}, "d": {}}}
	g, err := dag.NewGraph(def, mentions(def))
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
	// A second Start returns the same decisions, under the same claims.
	want.Changed = nil
	if diff := cmp.Diff(want, s.Start()); diff != "" {
		t.Errorf("decisions, again (-want +got):\n%s", diff)
	}
}

func TestRestoreWithInstances(t *testing.T) {
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"a": fanned(0), "b": fanned(1), "c": fanned(0), "d": fanned(0), "e": fanned(0), "f": {},
	}}
	g, err := dag.NewGraph(def, mentions(def))
	if err != nil {
		t.Fatal(err)
	}
	run, done := dag.Record{State: "running", ExitCode: -1}, dag.Record{State: "completed", Claim: 1}
	failed := dag.Record{State: "failed", Claim: 1, ExitCode: 1}
	s := dag.Restore(g, []dag.Record{
		run, run, run, {State: "running", Claim: 4, PendingEnd: true, Failure: dag.Failure{State: "failed", Reason: "deadline"}}, run, {State: "failed"},
		failed, failed, {}, // b: too many have failed for the third to start
		done, {State: "queued", Claim: 2, ExitCode: -1}, // a
		done, done, // a
		// e has none; f does not fan out, and the instances of c are unknown
	},
		dag.WithExpansion(1, 0, 3, false), dag.WithExpansion(0, 5, 4, false), dag.WithExpansion(3, 0, 1000, true), dag.WithExpansion(4, 0, 1, false),
		dag.WithExpansion(5, 0, 1, false), dag.WithExpansion(0, 0, 1, false), dag.WithExpansion(9, 0, 1, false), dag.WithExpansion(2, 0, 0, false),
	)
	d := s.Start()
	got := make(map[string]string)
	for i := range s.Len() {
		got[s.Name(i)] = s.Task(i).State
	}
	want := map[string]string{
		"a": "running", "a[5]": "completed", "a[6]": "queued", "a[7]": "completed", "a[8]": "completed",
		"b": "failed", "b[0]": "failed", "b[1]": "failed", "b[2]": "skipped", "c": "pending", "d": "running",
		"e": "running", "e[0]": "queued", "f": "failed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	var requested []string
	for _, i := range d.Place {
		requested = append(requested, s.Name(i))
	}
	if diff := cmp.Diff([]string{"a[6]", "e[0]"}, requested); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	if !slices.Equal(d.Expand, []int{2}) || !slices.Equal(d.Stop, []int{3}) {
		t.Errorf("expanded %v, stopped %v", d.Expand, d.Stop)
	}
}

// An instance does not outlive its task, and a task does not wait for instances that have all ended.
func TestRestoreOfGroupsThatHaveEnded(t *testing.T) {
	g, err := dag.NewGraph(&v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": fanned(0), "b": fanned(0)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := dag.Restore(g, []dag.Record{{State: "failed"}, {State: "running"}, {State: "running", Claim: 1}, {State: "completed", Claim: 1}},
		dag.WithExpansion(0, 0, 1, false), dag.WithExpansion(1, 0, 1, false))
	d := s.Start()
	if s.Task(2).State != "cancelled" || s.Task(1).State != "completed" || d.End == nil || len(d.Place)+len(d.Stop) > 0 {
		t.Errorf("%+v, %+v", s.Records(), d)
	}
}

func TestRestoreFindsTheFirstFailure(t *testing.T) {
	def := &v1.Definition{FailurePolicy: "halt", Tasks: map[string]*v1.TaskDefinition{
		"a": {}, "b": {ContinueOnError: true}, "c": {}, "d": {}, "e": {},
	}}
	g, err := dag.NewGraph(def, mentions(def))
	if err != nil {
		t.Fatal(err)
	}
	failed := dag.Record{State: "failed"}
	records := []dag.Record{{State: "completed"}, failed, failed, failed, {State: "queued", Claim: 1}}
	for name, tt := range map[string]struct {
		first string
		want  int
	}{
		"told":          {"d", 3},
		"none":          {"", 2},
		"not a failure": {"a", 2},
		"excused":       {"b", 2},
		"no task":       {"z", 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := dag.Restore(g, records, dag.WithRunState(&historyv1.RunState{FirstFailure: tt.first}))
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

// A task that a person has repeated in a halted run starts in the next execution, too, if it still waits for another one.
func TestRepeatedTaskIsCarried(t *testing.T) {
	l, _ := start(t, tasks(map[string]*v1.TaskDefinition{"bad": {Retry: once()}, "up": {}, "it": {DependsOn: []string{"up"}}}))
	l.placed("bad", "up")
	l.s.Apply(l.end("bad", exit(1)), l.end("up", exit(0)))
	l, _ = l.reopen(dag.Rerun{From: []string{"up"}})
	c := &historyv1.RunState{Tasks: map[string]*historyv1.TaskState{}}
	if l.s.Save(c); !c.Tasks["it"].GetRetried() {
		t.Errorf("it is carried as %v", c.Tasks["it"])
	}
}

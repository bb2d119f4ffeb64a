package dag_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// retried returns a task that fans out and whose instances become dead letters with the second failure.
func retried(maxFailures int32) *v1.TaskDefinition {
	return &v1.TaskDefinition{Parallel: structpb.NewStringValue("n"), MaxFailures: maxFailures, Retry: oneRetry()}
}

// After Retry of an instance of an ended task, the task runs again, tasks skipped below it wait again, and tasks that ran do
// not run twice.
func TestRetryOfAnInstance(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"each":   retried(0),
		"after":  {DependsOn: []string{"each"}},
		"notify": {DependsOn: []string{"each"}, When: "always"},
		"other":  {},
	}})
	l.expand("each", dag.Expanded{Count: 3})
	l.placed("other", "each[0]")
	l.s.Apply(l.end("each[0]", exit(0)))
	l.die("each[1]")
	l.placed("notify")
	l.s.Apply(l.end("notify", exit(0)))
	l.want(map[string]string{"each": "failed/instances", "each[1]": "dead_letter/exit_code", "each[2]": "skipped/max_failures", "after": "skipped/upstream"})
	each, _ := l.index("each")
	if err := l.s.MayRetry(each); !errors.Is(err, dag.ErrNotDeadLetter) {
		t.Errorf("the task itself can be put back: %v", err)
	}

	d := l.retry("each[1]")
	if diff := cmp.Diff([]string{"each[1]", "each[2]"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	l.want(map[string]string{"each": "running/", "each[0]": "completed/", "after": "pending/", "notify": "completed/"})
	if rec := record(t, l.s, "each[1]"); rec != (dag.Record{State: "queued", Claim: 3, ExitCode: -1, Retried: true}) {
		t.Errorf("each[1] is %+v", rec)
	}
	l.placed("each[1]", "each[2]")
	l.s.Apply(l.end("each[1]", exit(0)), l.end("each[2]", exit(0)))
	l.want(map[string]string{"each": "completed/", "after": "queued/", "notify": "completed/"})
	if l.s.FirstFailure() != -1 || l.s.Count("completed") != 5 {
		t.Errorf("first failure %d, %v", l.s.FirstFailure(), l.s.Counts())
	}
}

// In a task that still runs, Retry changes only the dead letter and the instances that were skipped for maxFailures.
func TestRetryInARunningGroup(t *testing.T) {
	def := func(policy string) *v1.Definition {
		return &v1.Definition{FailurePolicy: policy, Tasks: map[string]*v1.TaskDefinition{"each": retried(1), "other": {Retry: once()}}}
	}
	begin := func(policy string) live {
		l, _ := start(t, def(policy))
		l.expand("each", dag.Expanded{Count: 5})
		l.placed("each[0]", "other")
		l.die("each[1]")
		l.die("each[2]")
		l.want(map[string]string{"each": "running/", "each[0]": "assigned/", "each[3]": "skipped/max_failures", "each[4]": "skipped/max_failures"})
		return l
	}
	l := begin("continue")
	d := l.retry("each[2]")
	if diff := cmp.Diff([]string{"each[2]", "each[3]", "each[4]"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	if len(d.Changed) != 3 {
		t.Errorf("changed are %v", l.names(d.Changed))
	}
	if d = l.retry("each[1]"); len(d.Changed) != 1 || len(d.Place) != 1 {
		t.Errorf("changed are %v", l.names(d.Changed))
	}

	l = begin("halt") // and another task has halted the run
	l.s.Apply(l.end("other", ended("failed")))
	d = l.retry("each[2]")
	if diff := cmp.Diff([]string{"each[2]"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	l.want(map[string]string{"each[3]": "skipped/halt", "each[4]": "skipped/halt"})
	l.placed("each[2]")
	l.s.Apply(l.end("each[0]", exit(0)), l.end("each[2]", exit(0)))
	l.want(map[string]string{"each": "skipped/halt"})
}

func TestRetryInADoomedGroup(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": retried(1)}})
	l.expand("each", dag.Expanded{Count: 2})
	l.placed("each[0]")
	l.die("each[1]")
	l.s.Apply(dag.CancelTask{})
	i, _ := l.index("each[1]")
	if err := l.s.MayRetry(i); !errors.Is(err, dag.ErrStopping) {
		t.Errorf("it may be put back: %v", err)
	}
	if d := l.retry("each[1]"); len(d.Changed) > 0 {
		t.Errorf("put back: %+v", d)
	}
}

// Requeuing the cause of a halt makes the instances pending again that it skipped in a running task.
func TestRetryLiftsTheHaltThatItsTaskCaused(t *testing.T) {
	l, _ := start(t, tasks(map[string]*v1.TaskDefinition{"cause": {Retry: oneRetry()}, "each": retried(0)}))
	l.expand("each", dag.Expanded{Count: 3})
	l.placed("each[0]")
	l.die("cause")
	l.want(map[string]string{"each": "running/", "each[0]": "assigned/", "each[1]": "skipped/halt", "each[2]": "skipped/halt"})
	d := l.retry("cause")
	if diff := cmp.Diff([]string{"cause", "each[1]", "each[2]"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	l.want(map[string]string{"each": "running/", "each[0]": "assigned/"})
}

// endedRun returns a run in which everything has ended:
//
//	a -> b -> each -> last
//	other
//	partitioned
func endedRun(t *testing.T, policy string) live {
	t.Helper()
	l, _ := start(t, &v1.Definition{FailurePolicy: policy, Tasks: map[string]*v1.TaskDefinition{
		"a":      {},
		"b":      {DependsOn: []string{"a"}},
		"each":   {Parallel: structpb.NewStringValue("n"), DependsOn: []string{"b"}, Retry: oneRetry(), MaxFailures: 1},
		"last":   {DependsOn: []string{"each"}},
		"other":  {Retry: once()},
		"remote": {Parallel: structpb.NewStringValue("n")},
		"within": {Parallel: structpb.NewStringValue("n"), MaxFailures: 1, Retry: once()},
	}})
	l.expand("remote", dag.Expanded{Count: 1000, Partitioned: true})
	l.expand("within", dag.Expanded{Count: 2})
	l.placed("a", "other", "within[0]", "within[1]")
	l.s.Apply(l.end("a", exit(0)), l.end("remote", exit(1)), l.end("within[0]", exit(1)), l.end("within[1]", exit(0)))
	l.placed("b")
	l.s.Apply(l.end("b", exit(0)))
	l.expand("each", dag.Expanded{Count: 3})
	l.placed("each[0]")
	l.s.Apply(l.end("each[0]", exit(0)))
	l.die("each[1]")
	l.die("each[2]")
	if d := l.s.Apply(l.end("other", ended("failed"))); d.End == nil {
		t.Fatalf("the run continues: %v", l.s.Counts())
	}
	return l
}

func (l live) reopen(again dag.Rerun, options ...dag.RestoreOption) (live, dag.Decisions) {
	l.t.Helper()
	for i := range l.g.Len() {
		if from, count, remote, ok := l.s.Expansion(i); ok {
			options = append(options, dag.WithExpansion(i, from, count, remote))
		}
	}
	// The expansions are in the order of the tasks, and so are the records.
	records := l.s.Records()[:l.g.Len()]
	for i := range l.g.Len() {
		first, count := l.s.Instances(i)
		records = append(records, l.s.Records()[first:first+count]...)
	}
	s, err := dag.Reopen(l.g, records, again, options...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.s = s
	return l, s.Start()
}

func TestReopenWhatFailed(t *testing.T) {
	l, d := endedRun(t, "continue").reopen(dag.Rerun{Failed: true})
	if diff := cmp.Diff([]string{"other", "each[1]", "each[2]"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"remote"}, l.names(d.Expand)); diff != "" {
		t.Errorf("expanded (-want +got):\n%s", diff)
	}
	l.want(map[string]string{
		"a": "completed/", "b": "completed/", "each": "running/", "each[0]": "completed/", "each[1]": "queued/",
		"last": "pending/", "other": "queued/", "remote": "pending/", "within": "completed/", "within[0]": "failed/exit_code",
	})
	if rec := record(t, l.s, "each[1]"); rec != (dag.Record{State: "queued", Claim: 3, ExitCode: -1}) {
		t.Errorf("each[1] is %+v", rec)
	}
	l.placed("each[1]", "each[2]", "other")
	l.s.Apply(l.end("each[1]", exit(0)), l.end("each[2]", exit(0)), l.end("other", exit(0)))
	l.expand("remote", dag.Expanded{})
	l.placed("last")
	if d = l.s.Apply(l.end("last", exit(0))); d.End == nil || d.End.State != "completed" {
		t.Errorf("end %+v", d.End)
	}
	if _, d = l.reopen(dag.Rerun{Failed: true}); d.End == nil || d.End.State != "completed" || len(d.Changed) > 0 {
		t.Errorf("with nothing to do again: %+v", d)
	}
}

func TestReopenFromATask(t *testing.T) {
	l, d := endedRun(t, "continue").reopen(dag.Rerun{From: []string{"b"}, Tasks: []string{"each[1]"}})
	if diff := cmp.Diff([]string{"b"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	l.want(map[string]string{
		"a": "completed/", "b": "queued/", "each": "pending/", "last": "pending/",
		"other": "failed/r", "remote": "failed/exit_code", "within[1]": "completed/",
	})
	if _, ok := l.s.Index("each[0]"); ok || l.s.Len() != l.g.Len()+2 {
		t.Errorf("the task keeps its instances: %d records", l.s.Len())
	}
	l.placed("b")
	l.s.Apply(l.end("b", exit(0)))
	d = l.expand("each", dag.Expanded{Count: 1})
	if diff := cmp.Diff([]string{"each[0]"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	if rec := record(t, l.s, "each[0]"); rec.Claim != 3 { // claims up to 2 have been used
		t.Errorf("each[0] is %+v", rec)
	}
	if rec := record(t, l.s, "b"); rec.Claim != 2 || rec.Retried {
		t.Errorf("b is %+v", rec)
	}
}

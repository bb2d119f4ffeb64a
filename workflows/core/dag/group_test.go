package dag_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// fanned returns a task without retries that fans out.
func fanned(maxFailures int32) *v1.TaskDefinition {
	return &v1.TaskDefinition{Parallel: structpb.NewStringValue("n"), MaxFailures: maxFailures, Retry: once()}
}

func exit(code int32) dag.Ended {
	if code == 0 {
		return dag.Ended{State: "completed"}
	}
	return dag.Ended{State: "failed", Reason: "exit_code", Error: fmt.Sprintf("exit code %d", code), ExitCode: code}
}

// The ends of the instances decide how their task ends.
func TestInstanceEndsDecideHowTheirTaskEnds(t *testing.T) {
	lost := dag.Ended{State: "lost", Reason: "node_lost", ExitCode: -1}
	bad := dag.Ended{State: "failed", Reason: "bad_spec", ExitCode: -1, NoRetry: true}
	for name, tt := range map[string]struct {
		maxFailures int32
		ends        []dag.Ended // of each[0], each[1], ..., which start at once
		want        dag.Record
	}{
		"no instances":        {0, nil, dag.Record{State: "completed"}},
		"all completed":       {0, repeat(3, exit(0)), dag.Record{State: "completed"}},
		"stopped is as good":  {0, []dag.Ended{exit(0), {State: "stopped"}}, dag.Record{State: "completed"}},
		"one failed":          {0, []dag.Ended{exit(0), exit(3), exit(0)}, dag.Record{State: "failed", Reason: "instances", Error: "1 of 3 instances failed: each[1]: exit code 3", ExitCode: 3}},
		"the lowest is named": {0, []dag.Ended{lost, exit(0), exit(4), exit(5)}, dag.Record{State: "failed", Reason: "instances", Error: "3 of 4 instances failed: each[0]: node_lost", ExitCode: 4}},
		"none of them ran":    {0, []dag.Ended{exit(0), lost}, dag.Record{State: "failed", Reason: "instances", Error: "1 of 2 instances failed: each[1]: node_lost", ExitCode: -1}},
		"as many as may":      {2, []dag.Ended{exit(1), exit(0), exit(2)}, dag.Record{State: "completed", ExitCode: 1}},
		"one more":            {2, []dag.Ended{exit(1), exit(9), exit(2)}, dag.Record{State: "failed", Reason: "instances", Error: "3 of 3 instances failed: each[0]: exit code 1", ExitCode: 1}},
		"cancelled counts":    {0, []dag.Ended{exit(0), {State: "cancelled", ExitCode: -1}}, dag.Record{State: "failed", Reason: "instances", Error: "1 of 2 instances failed: each[1]: cancelled", ExitCode: -1, Final: true}},
		"few fail again":      {1, []dag.Ended{exit(1), bad}, dag.Record{State: "failed", Reason: "instances", Error: "2 of 2 instances failed: each[0]: exit code 1", ExitCode: 1}},
		"too many fail again": {1, []dag.Ended{bad, exit(0), bad}, dag.Record{State: "failed", Reason: "instances", Error: "2 of 3 instances failed: each[0]: bad_spec", ExitCode: -1, Final: true}},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": fanned(tt.maxFailures)}})
			s, end := l.s, l.expand("each", dag.Expanded{Count: len(tt.ends)}).End
			counts := map[string]int{}
			var ends []dag.Event
			for k, e := range tt.ends {
				name := fmt.Sprintf("each[%d]", k)
				l.placed(name)
				ends = append(ends, l.end(name, e))
				counts[e.State]++
			}
			if len(ends) > 0 {
				end = l.s.Apply(ends...).End
			}
			if diff := cmp.Diff(tt.want, s.Task(0)); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			if want := tt.want.State; end.State != want {
				t.Errorf("the run ended %+v, want %s", end, want)
			}
			if first, count := s.Instances(0); count != len(tt.ends) || count > 0 && first != 1 || s.Len() != 1+len(tt.ends) {
				t.Errorf("instances are %d from %d, records %d", count, first, s.Len())
			}
			if len(tt.ends) > 0 {
				if diff := cmp.Diff(counts, s.InstanceCounts(0)); diff != "" {
					t.Errorf("counts (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Instances that wait for approval are withdrawn when too many others have failed.
func TestStoppedGroupTakesApprovalsBack(t *testing.T) {
	each := fanned(0)
	each.Type = v1.TypeApproval
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": each}})
	l.expand("each", dag.Expanded{Count: 3})
	for k := range 3 {
		l.placed(fmt.Sprintf("each[%d]", k))
	}
	rejected := dag.Ended{State: "rejected", Reason: "rejected", ExitCode: -1, NoRetry: true}
	d := l.s.Apply(l.end("each[1]", rejected))
	first, _ := l.s.Instances(0)
	if diff := cmp.Diff([]int{first, first + 2}, d.Stop); diff != "" || d.End != nil {
		t.Fatalf("to be stopped (-want +got):\n%s\nend %v", diff, d.End)
	}
	stopped := dag.Ended{State: "cancelled", ExitCode: -1}
	end := l.s.Apply(l.end("each[0]", stopped), l.end("each[2]", stopped)).End
	if rec := l.s.Task(first); rec.State != "skipped" || rec.Reason != "max_failures" {
		t.Errorf("each[0] is %+v", rec)
	}
	if rec := l.s.Task(0); rec.State != "failed" || rec.Error != "1 of 3 instances failed: each[1]: rejected" || end == nil {
		t.Errorf("each is %+v, the run ends %v", rec, end)
	}
}

// expand delivers the expansion of a task to the state.
func (l live) expand(name string, e dag.Expanded) dag.Decisions {
	l.t.Helper()
	e.Task, _ = l.index(name)
	return l.s.Apply(e)
}

func TestFanOut(t *testing.T) {
	l, d := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"each":  {Foreach: structpb.NewStringValue("x"), Condition: "y"},
		"after": {DependsOn: []string{"each"}},
	}})
	each, _ := l.index("each")
	if len(d.Evaluate) != 1 || len(d.Expand) != 0 {
		t.Fatalf("before the condition: %+v", d)
	}
	if d = l.s.Apply(dag.Expanded{Task: each, Count: 1}); len(d.Changed) > 0 {
		t.Fatalf("expanded without having been asked: %+v", d)
	}
	d = l.s.Apply(dag.Evaluated{Task: each, Value: true})
	if diff := cmp.Diff([]string{"each"}, l.names(d.Expand)); diff != "" {
		t.Fatalf("to be expanded (-want +got):\n%s", diff)
	}
	d = l.expand("each", dag.Expanded{From: 2, Count: 2})
	if diff := cmp.Diff([]string{"each[2]", "each[3]"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	l.want(map[string]string{"each": "running/", "each[2]": "queued/", "each[3]": "queued/", "after": "pending/"})
	one, _ := l.index("each[3]")
	if l.s.Group(one) != each || l.s.Number(one) != 3 || l.s.Definition(one) != l.s.Definition(each) || l.s.Group(each) != -1 || l.s.Number(each) != -1 {
		t.Errorf("each[3] is number %d of %d", l.s.Number(one), l.s.Group(one))
	}
	for _, name := range []string{"each[0]", "each[1]", "each[4]", "after[0]", "each[02]", "other[2]"} {
		if i, ok := l.s.Index(name); ok {
			t.Errorf("%s is record %d", name, i)
		}
	}
	// Instances are retried like tasks, and the task itself has no attempts.
	if d = l.s.Apply(dag.Placed{Task: each}, dag.Ended{Task: each, State: "failed"}); len(d.Changed) > 0 {
		t.Errorf("the task changes: %+v", d)
	}
	l.placed("each[2]", "each[3]")
	d = l.s.Apply(l.end("each[2]", ended("failed")), l.end("each[3]", ended("completed")))
	if len(d.Backoff) != 1 || d.End != nil {
		t.Errorf("no back-off: %+v", d)
	}
	i, claim := l.index("each[2]")
	l.s.Apply(dag.BackoffOver{Task: i, Claim: claim})
	l.placed("each[2]")
	d = l.s.Apply(l.end("each[2]", ended("completed")))
	l.want(map[string]string{"each": "completed/"})
	if diff := cmp.Diff([]string{"after"}, l.names(d.Place)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
}

func TestFanOutThatFails(t *testing.T) {
	for reason, e := range map[string]dag.Expanded{
		"fan_out": {Err: `foreach is the text "x", not a list`},
		"system":  {Err: "the store is gone", Broken: true},
	} {
		task := fanned(0)
		task.Retry = nil // it is still not retried
		l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": task}})
		d := l.expand("each", e)
		if rec := l.s.Task(0); rec.State != "failed" || rec.Reason != reason || rec.Error != e.Err {
			t.Errorf("%+v", rec)
		}
		if d.End == nil || d.End.State != "failed" || d.End.Error != fmt.Sprintf("task %q failed: %s", "each", e.Err) {
			t.Errorf("end %+v", d.End)
		}
	}
}

// One failure more than maxFailures stops new starts in the task; running instances may finish.
func TestMaxFailuresStopsNewStarts(t *testing.T) {
	task := fanned(1)
	task.Retry = nil
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": task, "other": {}}})
	l.expand("each", dag.Expanded{Count: 7})
	l.placed("each[0]", "each[1]", "each[2]", "each[3]")
	l.s.Apply(l.end("each[0]", exit(1)), l.end("each[1]", dag.Ended{State: "killed"}))
	l.want(map[string]string{"each": "running/", "each[0]": "queued/exit_code", "each[4]": "queued/", "other": "queued/"})
	d := l.s.Apply(l.end("each[2]", dag.Ended{State: "killed", Reason: "killed", ExitCode: 137}))
	l.want(map[string]string{
		"each": "running/", "each[0]": "failed/exit_code", "each[3]": "assigned/", "other": "queued/",
		"each[4]": "skipped/max_failures", "each[6]": "skipped/max_failures",
	})
	if diff := cmp.Diff([]string{"each[4]", "each[5]", "each[6]"}, l.names(d.Withdraw)); diff != "" {
		t.Errorf("withdrawn (-want +got):\n%s", diff)
	}
	if rec := record(t, l.s, "each[5]"); rec.Error != `too many instances of task "each" have failed (maxFailures: 1)` {
		t.Errorf("each[5] is %+v", rec)
	}
	if len(d.Stop) > 0 {
		t.Errorf("stops what runs: %v", l.names(d.Stop))
	}
	l.s.Apply(l.end("each[3]", exit(2))) // is not retried
	l.want(map[string]string{"each": "failed/instances", "each[3]": "failed/exit_code"})
	if rec := record(t, l.s, "each"); rec.Error != "4 of 7 instances failed: each[0]: exit code 1" || rec.ExitCode != 1 {
		t.Errorf("each is %+v", rec)
	}
}

// A caller that sees more than this state halts the instances of a task, and lifts the halt.
func TestHaltedInstancesAreResumed(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": fanned(0)}})
	l.expand("each", dag.Expanded{Count: 2})
	l.placed("each[0]")
	l.s.Apply(dag.HaltGroup{Task: 0, Reason: v1.ReasonHalt})
	l.want(map[string]string{"each": "running/", "each[0]": "assigned/", "each[1]": "skipped/halt"})
	if got := l.names(l.s.Apply(dag.ResumeGroup{Task: 0}).Place); !cmp.Equal(got, []string{"each[1]"}) {
		t.Errorf("%v ask for a node", got)
	}
	l.want(map[string]string{"each": "running/", "each[0]": "assigned/", "each[1]": "queued/"})
}

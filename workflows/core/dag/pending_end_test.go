package dag_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// doomed returns a run with a task in each state before the end and one after it.
func doomed(t *testing.T) live {
	t.Helper()
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"asked":    {Condition: "x"},
		"unknown":  {Parallel: structpb.NewStringValue("x")},
		"backoff":  {},
		"done":     {},
		"finishes": {},
		"gone":     {},
		"later":    {DependsOn: []string{"runs"}},
		"queued":   {},
		"runs":     {},
		"spare":    {},
	}})
	l.placed("backoff", "done", "finishes", "gone", "runs")
	l.s.Apply(l.end("backoff", ended("lost")), l.end("done", ended("completed")))
	return l
}

var every = []string{"asked", "unknown", "backoff", "done", "finishes", "gone", "later", "queued", "runs"}

func TestCancelTask(t *testing.T) {
	l := doomed(t)
	var events []dag.Event
	for _, name := range every {
		i, _ := l.index(name)
		events = append(events, dag.CancelTask{Task: i, Reason: "not wanted"})
	}
	d := l.s.Apply(events...)
	if diff := cmp.Diff([]string{"finishes", "gone", "runs"}, l.names(d.Stop)); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"queued"}, l.names(d.Withdraw)); diff != "" {
		t.Errorf("withdrawn (-want +got):\n%s", diff)
	}
	const gone = "cancelled/task_cancelled"
	l.want(map[string]string{"asked": gone, "unknown": gone, "backoff": gone, "later": gone, "queued": gone, "runs": "assigned/", "done": "completed/r", "spare": "queued/"})
	if d = l.s.Apply(events...); len(d.Changed)+len(d.Stop) > 0 {
		t.Errorf("cancelled again: %+v", d)
	}
	d = l.s.Apply(l.end("finishes", ended("completed")), l.end("gone", dag.Ended{State: "moved"}), l.end("runs", ended("failed")))
	l.want(map[string]string{"finishes": "completed/r", "gone": gone, "runs": gone})
	if rec := record(t, l.s, "runs"); rec.Error != "not wanted" || rec.PendingEnd || rec.Attempt != 0 || rec.ExitCode != 1 {
		t.Errorf("runs is %+v", rec)
	}
	if len(d.Backoff)+len(d.Place) > 0 {
		t.Errorf("continues: %+v", d)
	}
	l.placed("spare")
	d = l.s.Apply(l.end("spare", ended("completed")))
	if d.End == nil || d.End.State != "completed" { // a cancellation of one task fails no run
		t.Errorf("end %+v", d.End)
	}
}

func TestExpire(t *testing.T) {
	l := doomed(t)
	const late = "failed/deadline"
	for _, name := range every {
		i, _ := l.index(name)
		d := l.s.Apply(dag.Expire{Task: i, Error: "deadline of 1m"})
		switch rec := l.s.Task(i); name {
		case "done":
		case "finishes", "gone", "runs":
			if !rec.PendingEnd || len(d.Stop) != 1 {
				t.Errorf("%s is %+v: %+v", name, rec, d)
			}
		default:
			if rec.State+"/"+rec.Reason != late || rec.Error != "deadline of 1m" {
				t.Errorf("%s is %+v", name, rec)
			}
		}
	}
	// The pending ends survive a restore from the records.
	l.s = dag.Restore(l.g, l.s.Records())
	if diff := cmp.Diff([]string{"finishes", "gone", "runs"}, l.names(l.s.Start().Stop)); diff != "" {
		t.Errorf("restored, stopped (-want +got):\n%s", diff)
	}
	l.s.Apply(l.end("finishes", ended("completed")), l.end("gone", dag.Ended{State: "moved"}), l.end("runs", ended("cancelled")))
	l.want(map[string]string{"finishes": "completed/r", "gone": late, "runs": late, "later": late})
}

// A person's kill is a failure of the run and is not retried, whatever the attempt then reports.
func TestKillIsAFailureThatIsNotRetried(t *testing.T) {
	const gone = "killed/killed"
	for _, end := range []string{"cancelled", "failed", "killed_oom", "lost", "moved"} {
		l := doomed(t)
		for _, name := range every {
			i, _ := l.index(name)
			l.s.Apply(dag.Kill{Task: i, Reason: "killed by ann"})
		}
		l.s = dag.Restore(l.g, l.s.Records())
		if diff := cmp.Diff([]string{"finishes", "gone", "runs"}, l.names(l.s.Start().Stop)); diff != "" {
			t.Errorf("stopped (-want +got):\n%s", diff)
		}
		d := l.s.Apply(l.end("finishes", ended("completed")), l.end("gone", ended(end)), l.end("runs", ended(end)))
		if len(d.Backoff)+len(d.Place) > 0 {
			t.Errorf("continues: %+v", d)
		}
		l.want(map[string]string{"asked": gone, "unknown": gone, "backoff": gone, "later": gone, "queued": gone, "finishes": "completed/r", "gone": gone, "runs": gone, "done": "completed/r"})
		l.placed("spare")
		d = l.s.Apply(l.end("spare", ended("completed")))
		if d.End == nil || d.End.State != "failed" || !strings.Contains(d.End.Error, "was killed: killed by ann") {
			t.Errorf("end %+v", d.End)
		}
	}
}

// Cancelling, killing or expiring a task ends the task and its instances.
func TestEndingATaskEndsItsInstances(t *testing.T) {
	for reason, event := range map[string]dag.Event{
		"cancelled/task_cancelled": dag.CancelTask{Reason: "x"}, "failed/deadline": dag.Expire{Error: "x"}, "killed/killed": dag.Kill{Reason: "x"},
	} {
		t.Run(reason, func(t *testing.T) {
			task := fanned(0)
			task.Retry = nil
			def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": task}}
			begin := func() live {
				l, _ := start(t, def)
				l.expand("each", dag.Expanded{Count: 4})
				l.placed("each[0]", "each[1]", "each[2]")
				l.s.Apply(l.end("each[0]", exit(0)))
				return l
			}
			l := begin()
			d := l.s.Apply(event)
			if diff := cmp.Diff([]string{"each[1]", "each[2]"}, l.names(d.Stop)); diff != "" {
				t.Errorf("stopped (-want +got):\n%s", diff)
			}
			l.want(map[string]string{"each": "running/", "each[0]": "completed/", "each[1]": "assigned/", "each[3]": reason})
			d = l.s.Apply(l.end("each[1]", exit(0)), l.end("each[2]", exit(1)))
			l.want(map[string]string{"each": reason, "each[1]": "completed/", "each[2]": reason})
			if rec := record(t, l.s, "each"); rec.Error != "x" || d.End == nil {
				t.Errorf("each is %+v, end %+v", rec, d.End)
			}

			l = begin() // all that is left completes
			l.placed("each[3]")
			l.s.Apply(event)
			l.s.Apply(l.end("each[1]", exit(0)), l.end("each[2]", exit(0)), l.end("each[3]", exit(0)))
			l.want(map[string]string{"each": "completed/"})

			l = begin() // nothing is left
			l.s.Apply(l.end("each[1]", exit(0)), l.end("each[2]", exit(0)))
			d = l.s.Apply(event)
			l.want(map[string]string{"each": reason, "each[3]": reason})
			if d.End == nil {
				t.Error("the run hangs")
			}
		})
	}
}

// An instance that is cancelled alone counts as failed.
func TestCancelledInstanceCountsAsFailed(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": fanned(1)}})
	l.expand("each", dag.Expanded{Count: 4})
	i, _ := l.index("each[3]")
	d := l.s.Apply(dag.CancelTask{Task: i, Reason: "not wanted"})
	if diff := cmp.Diff([]string{"each[3]"}, l.names(d.Withdraw)); diff != "" {
		t.Errorf("withdrawn (-want +got):\n%s", diff)
	}
	l.want(map[string]string{"each": "running/", "each[2]": "queued/"})
	l.placed("each[1]")
	i, _ = l.index("each[1]")
	l.s.Apply(dag.CancelTask{Task: i, Reason: "not wanted"})
	l.want(map[string]string{"each[1]": "assigned/", "each[2]": "queued/"})
	d = l.s.Apply(l.end("each[1]", ended("cancelled")))
	l.want(map[string]string{"each": "failed/instances", "each[0]": "skipped/max_failures", "each[2]": "skipped/max_failures"})
	want := `task "each" failed: 2 of 4 instances failed: each[1]: not wanted`
	if d.End == nil || d.End.Error != want {
		t.Errorf("end %+v", d.End)
	}
}

func TestDoomedRemoteGroup(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"each": fanned(0)}})
	l.expand("each", dag.Expanded{Count: 1000, Partitioned: true})
	if d := l.s.Apply(dag.Expire{Error: "x"}); len(d.Stop) != 1 {
		t.Errorf("not stopped: %+v", d)
	}
	if d := l.s.Apply(dag.Cancel{}); len(d.Stop) != 0 {
		t.Errorf("stopped twice: %+v", d)
	}
	l.s.Apply(l.end("each", dag.Ended{State: "cancelled"}))
	l.want(map[string]string{"each": "failed/deadline"})
}

func TestAbort(t *testing.T) {
	abort := dag.Abort{State: "failed", Reason: "deadline", Error: "the run's deadline of 1m is over"}
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}, "each": fanned(0), "done": {}}})
	l.expand("each", dag.Expanded{Count: 3})
	l.placed("a", "done", "each[0]", "each[1]")
	l.s.Apply(l.end("done", exit(0)), l.end("each[0]", exit(0)))
	d := l.s.Apply(abort, dag.Cancel{})
	if diff := cmp.Diff([]string{"a", "each[1]"}, l.names(d.Stop)); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	if !l.s.Cancelled() || l.s.Aborted() != abort {
		t.Errorf("cancelled %v, aborted %+v", l.s.Cancelled(), l.s.Aborted())
	}
	l.want(map[string]string{"each": "running/", "each[2]": "cancelled/run_cancelled"})
	if rec := record(t, l.s, "each[2]"); rec.Error != abort.Error {
		t.Errorf("each[2] is %+v", rec)
	}
	each, _ := l.g.Index("each")
	l.s = dag.Restore(l.g, l.s.Records(), dag.WithRunState(&historyv1.RunState{Abort: &v1.Run{State: abort.State, Reason: abort.Reason, Error: abort.Error}}), dag.WithExpansion(each, 0, 3, false))
	if diff := cmp.Diff([]string{"a", "each[1]"}, l.names(l.s.Start().Stop)); diff != "" {
		t.Errorf("restored, stopped (-want +got):\n%s", diff)
	}
	d = l.s.Apply(l.end("a", exit(1)), l.end("each[1]", exit(0)))
	l.want(map[string]string{"a": "cancelled/run_cancelled", "each[1]": "completed/", "each": "cancelled/run_cancelled", "done": "completed/"})
	want := &dag.End{State: "failed", Reason: "deadline", Error: abort.Error, Task: -1}
	if diff := cmp.Diff(want, d.End); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
}

func TestReused(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}, "b": {DependsOn: []string{"a"}}}})
	if d := l.s.Apply(dag.Reused{Task: 0, Claim: 2}, dag.Reused{Task: 1}); len(d.Changed) > 0 {
		t.Errorf("a result that nobody asked for: %+v", d)
	}
	d := l.s.Apply(dag.Reused{Task: 0, Claim: 1, ExitCode: 7})
	if diff := cmp.Diff(dag.Record{State: "completed", Claim: 1, ExitCode: 7}, l.s.Task(0)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b"}, l.names(d.Place)); diff != "" || len(d.Withdraw) > 0 {
		t.Errorf("%+v", d)
	}
}

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

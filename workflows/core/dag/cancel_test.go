package dag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

func TestCancel(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"asked":   {Condition: "x"},
		"backoff": {},
		"broken":  {Retry: once()},
		"done":    {},
		"fails":   {},
		"gives":   {},
		"later":   {DependsOn: []string{"done", "fails"}, OnFailure: "run"},
		"moves":   {},
		"queued":  {},
		"runs":    {},
		"stops":   {},
	}})
	l.placed("backoff", "broken", "done", "fails", "moves", "runs", "stops")
	l.s.Apply(l.end("broken", ended("failed")), l.end("backoff", ended("failed")))
	runs, claim := l.index("runs")
	l.s.Apply(dag.Running{Task: runs, Claim: claim})

	d := l.s.Apply(dag.Cancel{})
	if diff := cmp.Diff([]string{"done", "fails", "moves", "runs", "stops"}, l.names(d.Stop)); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gives", "queued"}, l.names(d.Withdraw)); diff != "" {
		t.Errorf("withdrawn (-want +got):\n%s", diff)
	}
	if len(d.Place)+len(d.Evaluate)+len(d.Backoff) != 0 || d.End != nil {
		t.Errorf("decisions %+v", d)
	}
	const gone = "cancelled/run_cancelled"
	l.want(map[string]string{
		"asked": gone, "backoff": gone, "later": gone, "queued": gone, "gives": gone,
		"broken": "failed/r", "runs": "running/", "fails": "assigned/",
	})
	if diff := cmp.Diff(dag.Decisions{}, l.s.Apply(dag.Cancel{})); diff != "" {
		t.Errorf("a second cancel decides:\n%s", diff)
	}
	gives, claim := l.index("gives")
	if d = l.s.Apply(dag.GaveUp{Task: gives, Claim: claim}, dag.Placed{Task: gives, Claim: claim}); len(d.Changed) != 0 {
		t.Errorf("a cancelled task changes: %+v", d)
	}

	l.s.Apply(l.end("fails", ended("failed")), l.end("moves", dag.Ended{State: "moved"}), l.end("stops", ended("stopped")))
	d = l.s.Apply(l.end("done", ended("completed")), l.end("runs", ended("killed")))
	l.want(map[string]string{"done": "completed/r", "fails": gone, "moves": gone, "runs": gone, "stops": gone})
	want := &dag.End{State: "cancelled", Reason: "cancelled", Error: "the run was cancelled", Task: -1}
	if diff := cmp.Diff(want, d.End); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	if !l.s.Cancelled() {
		t.Error("not cancelled")
	}
}

func TestCancelAndTheLastEnd(t *testing.T) {
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}}}
	for name, tt := range map[string]struct {
		events func(end dag.Event) []dag.Event
		want   string
	}{
		"cancel first": {func(end dag.Event) []dag.Event { return []dag.Event{dag.Cancel{}, end} }, "cancelled"},
		"end first":    {func(end dag.Event) []dag.Event { return []dag.Event{end, dag.Cancel{}} }, "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := start(t, def)
			l.placed("a")
			d := l.s.Apply(tt.events(l.end("a", ended("completed")))...)
			if d.End == nil || d.End.State != tt.want {
				t.Errorf("end %+v, want %s", d.End, tt.want)
			}
			if len(d.Stop) != 0 {
				t.Errorf("stops a task that has ended: %v", d.Stop)
			}
			if diff := cmp.Diff(dag.Decisions{}, l.s.Apply(dag.Cancel{})); diff != "" {
				t.Errorf("a cancel after the end decides:\n%s", diff)
			}
		})
	}
}

func TestEventsThatDoNotFitAreIgnored(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}, "b": {DependsOn: []string{"a"}}}})
	none := func(when string, events ...dag.Event) {
		t.Helper()
		before := l.s.Records()
		if diff := cmp.Diff(dag.Decisions{}, l.s.Apply(events...)); diff != "" {
			t.Errorf("%s: decisions:\n%s", when, diff)
		}
		if diff := cmp.Diff(before, l.s.Records()); diff != "" {
			t.Errorf("%s: records (-before +after):\n%s", when, diff)
		}
	}
	none("no task", dag.Placed{Task: -1, Claim: 1}, dag.Ended{Task: 2, Claim: 1}, dag.Evaluated{Task: 7}, dag.BackoffOver{Task: -7})
	none("pending", dag.Placed{Task: 1}, dag.GaveUp{Task: 1}, dag.Ended{Task: 1}, dag.Evaluated{Task: 1, Value: true})
	none("queued", dag.Ended{Claim: 1, State: "failed"}, dag.Running{Claim: 1}, dag.BackoffOver{Claim: 1}, dag.Evaluated{}, dag.Placed{Claim: 2})
	l.placed("a")
	none("assigned", dag.Placed{Claim: 1, Node: "b"}, dag.GaveUp{Claim: 1}, dag.Ended{Claim: 2}, dag.Ended{}, dag.BackoffOver{Claim: 1})
	l.s.Apply(dag.Running{Claim: 1})
	none("running", dag.Running{Claim: 1}, dag.Placed{Claim: 1})
	l.s.Apply(dag.Ended{Claim: 1, State: "failed"})
	none("back-off", dag.Ended{Claim: 1, State: "completed"}, dag.Placed{Claim: 1}, dag.GaveUp{Claim: 1}, dag.BackoffOver{Claim: 2})
	l.s.Apply(dag.BackoffOver{Claim: 1})
	none("queued again", dag.BackoffOver{Claim: 1}, dag.Placed{Claim: 1}, dag.Ended{Claim: 1, State: "completed"})
	l.placed("a")
	none("assigned again", dag.Ended{Claim: 1, State: "completed"})
	l.s.Apply(dag.Ended{Claim: 2, State: "completed"})
	none("ended", dag.Ended{Claim: 2, State: "failed"}, dag.Running{Claim: 2}, dag.BackoffOver{Claim: 2}, dag.GaveUp{Claim: 2})
}

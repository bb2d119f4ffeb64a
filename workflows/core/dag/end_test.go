package dag_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

func TestAttemptEndDecidesHowATaskEnds(t *testing.T) {
	two, no := int32(2), false
	policies := map[string]*v1.RetryPolicy{
		"default":      nil,
		"two":          {MaxRetries: &two},
		"none":         once(),
		"notRetryable": {Retryable: &no},
	}
	noRetry := dag.Ended{State: "failed", Reason: "bad_spec", NoRetry: true}
	moved := dag.Ended{State: "moved", Reason: "no_room"}
	tests := []struct {
		policy  string
		ends    []dag.Ended
		state   string
		reason  string
		attempt int32
		claim   int32
		run     string
	}{
		{"default", nil, "completed", "", 0, 1, "completed"},
		{"default", []dag.Ended{ended("stopped")}, "stopped", "r", 0, 1, "completed"},
		{"default", repeat(9, ended("failed")), "dead_letter", "r", 3, 4, "failed"},
		{"default", repeat(9, ended("killed_oom")), "dead_letter", "r", 3, 4, "failed"},
		{"default", repeat(9, dag.Ended{State: "lost"}), "dead_letter", "lost", 3, 4, "failed"},
		{"default", repeat(3, ended("failed")), "completed", "", 3, 4, "completed"},
		{"default", []dag.Ended{ended("lost"), ended("killed_oom")}, "completed", "", 2, 3, "completed"},
		{"two", repeat(9, ended("failed")), "dead_letter", "r", 2, 3, "failed"},
		{"none", repeat(9, ended("failed")), "failed", "r", 0, 1, "failed"},
		{"none", repeat(9, ended("killed_oom")), "killed_oom", "r", 0, 1, "failed"},
		{"none", repeat(9, ended("lost")), "lost", "r", 0, 1, "failed"},
		{"notRetryable", repeat(9, ended("failed")), "failed", "r", 0, 1, "failed"},
		{"notRetryable", repeat(9, ended("lost")), "lost", "r", 0, 1, "failed"},
		{"default", []dag.Ended{noRetry}, "failed", "bad_spec", 0, 1, "failed"},
		{"default", []dag.Ended{ended("failed"), noRetry}, "failed", "bad_spec", 1, 2, "failed"},
		{"default", []dag.Ended{ended("killed")}, "killed", "r", 0, 1, "failed"},
		{"default", []dag.Ended{ended("rejected")}, "rejected", "r", 0, 1, "failed"},
		{"default", []dag.Ended{ended("cancelled")}, "cancelled", "r", 0, 1, "cancelled"},
		{"default", repeat(5, moved), "completed", "", 0, 6, "completed"},
		{"none", []dag.Ended{moved, moved, ended("failed")}, "failed", "r", 0, 3, "failed"},
		{"two", []dag.Ended{ended("failed"), moved, ended("failed"), moved, ended("lost")}, "dead_letter", "r", 2, 5, "failed"},
		{"none", []dag.Ended{ended("no such word")}, "failed", "r", 0, 1, "failed"},
		{"none", []dag.Ended{ended("skipped")}, "failed", "r", 0, 1, "failed"},
		{"none", []dag.Ended{ended("dead_letter")}, "failed", "r", 0, 1, "failed"},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i, tt.policy, tt.state), func(t *testing.T) {
			def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {Retry: policies[tt.policy]}}}
			s, end := play(t, def, script{attempts: map[string][]dag.Ended{"a": tt.ends}})
			got := s.Task(0)
			want := dag.Record{
				State: tt.state, Reason: tt.reason, Attempt: tt.attempt, Claim: tt.claim,
				Node: "node-a", Error: got.Error, ExitCode: got.ExitCode,
				Final: tt.reason == "bad_spec" || wordIn(tt.state, "killed rejected cancelled"),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			if end.State != tt.run {
				t.Errorf("the run ended %s, want %s", end.State, tt.run)
			}
			if diff := cmp.Diff(map[string]int{tt.state: 1}, s.Counts()); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContinueOnErrorKeepsTheRun(t *testing.T) {
	for _, policy := range []string{"continue", "halt"} {
		t.Run(policy, func(t *testing.T) {
			def := &v1.Definition{FailurePolicy: policy, Tasks: map[string]*v1.TaskDefinition{
				"a": {ContinueOnError: true, Retry: once()},
				"b": {DependsOn: []string{"a"}},
			}}
			s, end := play(t, def, script{attempts: map[string][]dag.Ended{"a": {ended("failed")}}})
			if diff := cmp.Diff(&dag.End{State: "completed", Task: -1}, end); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
			if a, b := s.Task(0).State, s.Task(1).State; a != "failed" || b != "completed" {
				t.Errorf("a %s, b %s", a, b)
			}
		})
	}
}

func TestTaskFailsWhenPlacementGivesUp(t *testing.T) {
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}}}
	g, _ := dag.NewGraph(def, mentions(def))
	s := dag.New(g)
	s.Start()
	d := s.Apply(dag.GaveUp{Task: 0, Claim: 1, Error: "0 of 3 nodes have label gpu"})
	want := &dag.End{
		State: "failed", Reason: "task_failed", Task: 0,
		Error: `task "a" failed: 0 of 3 nodes have label gpu`,
	}
	if diff := cmp.Diff(want, d.End); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	if rec := s.Task(0); rec.State != "failed" || rec.Reason != "placement_timeout" {
		t.Errorf("record %+v", rec)
	}
	s = dag.New(g)
	s.Start()
	if d = s.Apply(dag.GaveUp{Task: 0, Claim: 1, Reason: v1.ReasonDeadlock}); d.End == nil || d.End.Final != v1.ReasonDeadlock {
		t.Errorf("a deadlock is not the final reason of the run: %+v", d.End)
	}
}

func TestErrorOfARun(t *testing.T) {
	task := func() *v1.TaskDefinition { return &v1.TaskDefinition{Retry: once()} }
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": task(), "b": task(), "c": task(), "d": task(), "ok": task()}}
	tests := []struct {
		first dag.Ended
		more  int
		want  string
	}{
		{dag.Ended{State: "failed", Error: "exit code 1"}, 0, `task "a" failed: exit code 1 (attempt 0 on node-a)`},
		{dag.Ended{State: "failed", Error: "exit code 1"}, 2, `task "a" failed: exit code 1 (attempt 0 on node-a), and 2 more`},
		{dag.Ended{State: "failed", Reason: "timeout"}, 0, `task "a" failed: timeout (attempt 0 on node-a)`},
		{dag.Ended{State: "killed"}, 0, `task "a" was killed (attempt 0 on node-a)`},
		{dag.Ended{State: "lost", Error: "\n node-a is gone \nmore"}, 1, `task "a" was lost: node-a is gone (attempt 0 on node-a), and 1 more`},
		{
			dag.Ended{State: "failed", Error: "x" + strings.Repeat("ü", 200)}, 0,
			`task "a" failed: x` + strings.Repeat("ü", 99) + `... (attempt 0 on node-a)`,
		},
	}
	for _, tt := range tests {
		attempts := map[string][]dag.Ended{"a": {tt.first}}
		for _, name := range []string{"b", "c", "d"}[:tt.more] {
			attempts[name] = []dag.Ended{ended("failed")}
		}
		_, end := play(t, def, script{attempts: attempts})
		want := &dag.End{State: "failed", Reason: "task_failed", Error: tt.want, Task: 0}
		if tt.first.State == "killed" {
			want.Final = "killed"
		}
		if diff := cmp.Diff(want, end); diff != "" {
			t.Errorf("end (-want +got):\n%s", diff)
		}
	}
}

// TestFailureThatRecursIsTheFinalReasonOfItsRun checks that a run states whether it would fail again.
func TestFailureThatRecursIsTheFinalReasonOfItsRun(t *testing.T) {
	again, bad := ended("failed"), dag.Ended{State: "failed", Reason: "bad_spec", NoRetry: true}
	for name, tt := range map[string]struct {
		a, b    []dag.Ended
		excused bool // whether b continues on error
		want    string
	}{
		"all completed":         {want: ""},
		"retries spent":         {a: repeat(9, again), want: ""},
		"one would fail again":  {a: repeat(9, again), b: []dag.Ended{bad}, want: "bad_spec"},
		"after an ordinary one": {b: []dag.Ended{again, bad}, want: "bad_spec"},
		"excused":               {a: repeat(9, again), b: []dag.Ended{bad}, excused: true, want: ""},
		"ended by a person":     {a: []dag.Ended{{State: "killed"}}, want: "killed"},
		"cancelled alone":       {a: []dag.Ended{{State: "cancelled"}}, b: repeat(9, again), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}, "b": {ContinueOnError: tt.excused}}}
			_, end := play(t, def, script{attempts: map[string][]dag.Ended{"a": tt.a, "b": tt.b}})
			if end.Final != tt.want {
				t.Errorf("the run ended %+v, want the final reason %q", end, tt.want)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	retry := func(retries, first int32, multiplier float64, longest int32) *v1.RetryPolicy {
		return &v1.RetryPolicy{MaxRetries: &retries, BackoffMs: &first, BackoffMultiplier: &multiplier, MaxBackoffMs: &longest}
	}
	seven := int32(7)
	const s = time.Second
	tests := map[string]struct {
		retry *v1.RetryPolicy
		want  []time.Duration
	}{
		"default":          {nil, []time.Duration{1 * s, 2 * s, 4 * s}},
		"default limit":    {&v1.RetryPolicy{MaxRetries: &seven}, []time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s}},
		"constant":         {retry(3, 500, 1, 60_000), []time.Duration{s / 2, s / 2, s / 2}},
		"fraction":         {retry(3, 100, 1.5, 60_000), []time.Duration{100e6, 150e6, 225e6}},
		"none":             {retry(3, 0, 2, 60_000), []time.Duration{0, 0, 0}},
		"first over limit": {retry(2, 5000, 2, 3000), []time.Duration{3 * s, 3 * s}},
		"limit of zero":    {retry(2, 5000, 2, 0), []time.Duration{0, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {Retry: tt.retry}}}
			got := delays(t, def)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("huge", func(t *testing.T) {
		const longest = 1<<31 - 1
		got := delays(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {Retry: retry(1000, 1, 100, longest)}}})
		if len(got) != 1000 || got[999] != longest*time.Millisecond {
			t.Errorf("%d delays, the last is %v", len(got), got[len(got)-1])
		}
		for i := range len(got) - 1 {
			if got[i+1] < got[i] {
				t.Fatalf("delay %d is %v after %v", i+1, got[i+1], got[i])
			}
		}
	})
}

// delays returns the back-offs of a single task whose attempts all fail.
func delays(t *testing.T, def *v1.Definition) []time.Duration {
	t.Helper()
	g, err := dag.NewGraph(def, mentions(def))
	if err != nil {
		t.Fatal(err)
	}
	s := dag.New(g)
	s.Start()
	var got []time.Duration
	for {
		claim := s.Task(0).Claim
		d := s.Apply(dag.Placed{Claim: claim, Node: "n"}, dag.Ended{Claim: claim, State: "failed"})
		if d.End != nil {
			return got
		}
		if len(d.Backoff) != 1 || d.Backoff[0].Task != 0 || len(d.Place) != 0 {
			t.Fatalf("decisions %+v", d)
		}
		got = append(got, d.Backoff[0].Delay)
		s.Apply(dag.BackoffOver{Claim: claim})
	}
}

// TestRunInWhichNothingCompletedIsCancelledWithItsTask checks the end of a run with cancelled tasks: what completed decides.
func TestRunInWhichNothingCompletedIsCancelledWithItsTask(t *testing.T) {
	cancelled, failed := []dag.Ended{ended("cancelled")}, []dag.Ended{{State: "failed", NoRetry: true}}
	task := func(parents ...string) *v1.TaskDefinition { return &v1.TaskDefinition{DependsOn: parents} }
	tolerant := &v1.TaskDefinition{Parallel: structpb.NewNumberValue(2), MaxFailures: 2}
	for name, c := range map[string]struct {
		tasks    map[string]*v1.TaskDefinition
		attempts map[string][]dag.Ended
		fanOut   map[string]int
		want     string
	}{
		"alone":              {map[string]*v1.TaskDefinition{"a": task()}, map[string][]dag.Ended{"a": cancelled}, nil, "cancelled"},
		"with skipped tasks": {map[string]*v1.TaskDefinition{"a": task(), "b": task("a")}, map[string][]dag.Ended{"a": cancelled}, nil, "cancelled"},
		"excused": {
			map[string]*v1.TaskDefinition{"a": {ContinueOnError: true}, "b": {ContinueOnError: true}},
			map[string][]dag.Ended{"a": cancelled, "b": failed}, nil, "cancelled",
		},
		"beside a completed task": {map[string]*v1.TaskDefinition{"a": task(), "b": task()}, map[string][]dag.Ended{"a": cancelled}, nil, "completed"},
		"beside a stopped task": {
			map[string]*v1.TaskDefinition{"a": task(), "b": task()}, map[string][]dag.Ended{"a": cancelled, "b": {ended("stopped")}}, nil, "completed",
		},
		"beside a failed task": {map[string]*v1.TaskDefinition{"a": task(), "b": task()}, map[string][]dag.Ended{"a": cancelled, "b": failed}, nil, "failed"},
		"tolerated instances":  {map[string]*v1.TaskDefinition{"a": tolerant}, map[string][]dag.Ended{"a[0]": cancelled, "a[1]": failed}, map[string]int{"a": 2}, "cancelled"},
		"one instance of two":  {map[string]*v1.TaskDefinition{"a": tolerant}, map[string][]dag.Ended{"a[0]": cancelled}, map[string]int{"a": 2}, "completed"},
		"no instances":         {map[string]*v1.TaskDefinition{"a": tolerant, "b": task()}, map[string][]dag.Ended{"b": cancelled}, map[string]int{"a": 0}, "completed"},
	} {
		_, end := play(t, &v1.Definition{Tasks: c.tasks}, script{attempts: c.attempts, fanOut: c.fanOut})
		if end.State != c.want {
			t.Errorf("%s: the run ended %+v, want %s", name, end, c.want)
		}
	}
}

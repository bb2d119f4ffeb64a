package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

// fanned gives a fake gateway a run with a fan-out of six instances, one of which failed.
func fanned(f *fakeGateway) {
	nightly(f)
	count := int32(6)
	each := &v1.Task{
		State: "failed", Reason: "instances", Type: "shell", Error: "1 of 6 instances failed: each[4]: exit code 3", DependsOn: []string{"fetch"},
		StartedAt: after(2.1), CompletedAt: after(8), Count: &count, Counts: map[string]int32{"completed": 4, "dead_letter": 1, "skipped": 1},
	}
	for i := range count {
		from := 2.1 + float64(i)/2
		instance := &v1.Instance{
			Index: i, State: "completed", Node: fmt.Sprintf("local-%d", 1+i%2), AssignedAt: after(from), StartedAt: after(from + 0.25), CompletedAt: after(from + 1),
			Result: &v1.TaskResult{},
		}
		switch i {
		case 4:
			instance.State, instance.Reason, instance.Error, instance.Attempt = "dead_letter", "exit_code", "exit code 3", 1
			instance.Result = &v1.TaskResult{ExitCode: 3, Stderr: "no such image\nin item 4\n"}
			instance.Attempts = []*v1.Attempt{
				{Node: "local-2", State: "failed", AssignedAt: after(4), StartedAt: after(4.5), CompletedAt: after(5)},
				{Attempt: 1, Node: "local-1", State: "failed", AssignedAt: after(6), StartedAt: after(6.5), CompletedAt: after(8)},
			}
			instance.AssignedAt, instance.StartedAt, instance.CompletedAt = after(6), after(6.5), after(8)
		case 5:
			instance = &v1.Instance{Index: i, State: "skipped", Reason: "max_failures", CompletedAt: after(8)}
		}
		each.Instances = append(each.Instances, instance)
	}
	f.run.Tasks["each"] = each
	each.Instances[0].Item, each.Instances[1].Item = "a.png", `{"os":"linux"}`
	f.instances, f.page = map[string][]*v1.Instance{"each": each.Instances}, 4
}

func TestRunsGetOfAFanOut(t *testing.T) {
	f := fake(t)
	fanned(f)
	golden.Check(t, "testdata/runs-get-fanout.golden", run(t, "runs", "get", "last", "--gateway", f.url).stdout)
	var d struct {
		TaskCounts, InstanceCounts map[string]int

		Tasks map[string]struct {
			Count     *int           `json:"count"`
			Counts    map[string]int `json:"counts"`
			Instances []struct {
				Index, Attempt     *int
				State, Node, Error *string
				Result             *struct {
					ExitCode int
					Output   map[string]any
				}
			}
		}
	}
	f.run.TaskCounts, f.run.InstanceCounts = map[string]int32{"completed": 2, "failed": 1, "dead_letter": 1, "skipped": 1}, f.run.Tasks["each"].Counts
	text := run(t, "runs", "get", "last", "-o", "json", "--gateway", f.url).stdout
	must(t, json.Unmarshal([]byte(text), &d))
	each := d.Tasks["each"]
	if each.Count == nil || *each.Count != 6 || each.Counts["completed"] != 4 || len(each.Instances) != 6 {
		t.Fatalf("%+v", each)
	}
	for i, instance := range each.Instances {
		if instance.Index == nil || *instance.Index != i || instance.Attempt == nil || instance.State == nil || instance.Node == nil || instance.Error == nil || instance.Result == nil || instance.Result.Output == nil {
			t.Errorf("instance %d lacks something in\n%s", i, text)
		}
	}
	if d.TaskCounts["completed"] != 2 || d.InstanceCounts["completed"] != 4 {
		t.Errorf("the counts are %v and %v", d.TaskCounts, d.InstanceCounts)
	}
	if each.Instances[4].Result.ExitCode != 3 || each.Instances[5].Result.ExitCode != -1 {
		t.Errorf("results are %+v", each.Instances)
	}
	if strings.Contains(text, "cachedFrom") {
		t.Errorf("what was not reused is said to be in\n%s", text)
	}
	f.run.Tasks["each"].Instances[0].CachedFrom = "nightly-77777777"
	if again := run(t, "runs", "get", "last", "-o", "json", "--gateway", f.url).stdout; strings.Count(again, `"cachedFrom": "nightly-77777777"`) != 1 {
		t.Errorf("what was reused is not said in\n%s", again)
	}
	if fetch := d.Tasks["fetch"]; fetch.Count != nil || fetch.Counts != nil || fetch.Instances != nil {
		t.Errorf("a task that is not fanned out has %+v", fetch)
	}
}

func TestRunsInstances(t *testing.T) {
	f := fake(t)
	fanned(f)
	for _, format := range []string{"text", "json", "jsonl"} {
		got := run(t, "runs", "instances", "nightly", "each", "--limit", "2", "--page-token", "3", "-o", format, "--gateway", f.url)
		if got.code != 0 || format == output.Text && got.stderr != "there are more: --page-token 5\n" {
			t.Errorf("%+v", got)
		}
		golden.Check(t, "testdata/runs-instances-"+format+".golden", got.stdout)
	}
	// A page of the gateway may be smaller than the limit.
	f.page = 1
	if got := run(t, "runs", "instances", "nightly", "each", "--limit", "4", "-o", "jsonl", "--gateway", f.url); strings.Count(got.stdout, "\n") != 4 {
		t.Errorf("--limit 4 of pages of one: %+v", got)
	}
	if want := (&v1.ListInstancesRequest{Id: "nightly", Task: "each", PageSize: 2, PageToken: "3"}); !proto.Equal(f.asked[0], want) {
		t.Errorf("asked for %v", f.asked[0])
	}
	if got := run(t, "runs", "instances", "nightly", "each", "--state", "dead_letter", "--gateway", f.url); strings.Count(got.stdout, "\n") != 2 || !strings.Contains(got.stdout, "\n4") || got.stderr != "" {
		t.Errorf("those that spent their retries: %+v", got)
	}
	got := run(t, "runs", "instances", "nightly", "each", "--state", "failed", "--gateway", f.url)
	if want := "no instance of task each is failed (4 completed, 1 dead_letter, 1 skipped)\n"; got.code != 0 || got.stderr != want {
		t.Errorf("%+v, want %q", got, want)
	}
	run(t, "runs", "instances", "nightly", "each", "--state", "broken", "--gateway", f.url).ends(t, exit.CodeUsage, "")
}

// TestFailedInstancesArePrinted checks that the end of a run shows what a failed instance printed.
func TestFailedInstancesArePrinted(t *testing.T) {
	f := fake(t)
	fanned(f)
	f.messages[len(f.messages)-1].Run.Tasks["each"] = f.run.Tasks["each"]
	got := run(t, "runs", "watch", "last", "--gateway", f.url)
	for _, want := range []string{
		"task each failed: 1 of 6 instances failed: each[4]: exit code 3\n",
		"task each[4] dead_letter on local-1, attempt 1: exit code 3\n    no such image\n    in item 4\n  all output: switchyard runs logs nightly-4g5h6jkm 'each[4]'\n",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in\n%s", want, got.stderr)
		}
	}
}

func TestLogLinesNameTheirInstance(t *testing.T) {
	f := fake(t)
	fanned(f)
	f.logs = []*v1.LogEntry{{Task: "each[0]", Stream: "stdout", Data: []byte("zero\n")}, {Task: "each[1]", Stream: "stdout", Data: []byte("one\n")}}
	if got := run(t, "runs", "logs", "nightly", "each", "--gateway", f.url); got.stdout != "each[0] | zero\neach[1] | one\n" {
		t.Errorf("%+v", got)
	}
	f.run.Tasks = map[string]*v1.Task{"each": f.run.Tasks["each"]}
	if got := run(t, "runs", "logs", "nightly", "--gateway", f.url); got.stdout != "each[0] | zero\neach[1] | one\n" {
		t.Errorf("%+v", got)
	}
	f.logs = f.logs[:1]
	if got := run(t, "runs", "logs", "nightly", "each[0]", "--gateway", f.url); got.stdout != "zero\n" {
		t.Errorf("%+v", got)
	}
}

// TestProgressOfASmallFanOut checks that a small fan-out reports the end of each instance and nothing in between.
func TestProgressOfASmallFanOut(t *testing.T) {
	f := fake(t)
	fanned(f)
	count := int32(6)
	part := func(counts map[string]int32, instances ...*v1.Instance) *v1.WatchRunResponse {
		return &v1.WatchRunResponse{TaskCount: 5, Run: &v1.Run{Id: fakeRun, Name: "nightly", State: "running", CreatedAt: after(0), Tasks: map[string]*v1.Task{
			"each": {State: "running", StartedAt: after(2.1), Count: &count, Counts: counts, Instances: instances},
		}}}
	}
	all := f.run.Tasks["each"].Instances
	running := proto.CloneOf(all[1])
	running.State, running.CompletedAt = "running", nil
	last := f.messages[len(f.messages)-1]
	last.Run.Tasks["each"] = f.run.Tasks["each"]
	f.messages = append(f.messages[:3:3],
		part(map[string]int32{"running": 2, "pending": 4}, running),
		part(map[string]int32{"completed": 1, "running": 1, "pending": 4}, all[0]),
		part(map[string]int32{"completed": 2, "pending": 4}, all[1]),
		last,
	)
	got := run(t, "runs", "watch", "last", "--gateway", f.url)
	golden.Check(t, "testdata/fanout-stderr.golden", got.stderr)
	got = run(t, "runs", "watch", "last", "-o", "jsonl", "--gateway", f.url)
	golden.Check(t, "testdata/fanout-jsonl.golden", got.stdout[:strings.LastIndex(strings.TrimSpace(got.stdout), "\n")+1])
}

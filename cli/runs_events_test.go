package cli

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/cli/exit"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

func eventData(t *testing.T, fields map[string]any) *structpb.Struct {
	t.Helper()
	data, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRunsEvents(t *testing.T) {
	f := fake(t)
	// The gateway returns a short first page.
	first := &v1.ListRunEventsResponse{NextPageToken: "middle", After: "0-1", Items: []*v1.Event{
		{At: after(0), Event: "submitted"},
		{At: after(0.001), Task: "build", Event: "queued"},
		{Id: "0-1", At: after(0.1), Task: "build", Event: "assigned", Node: "a", Claim: 1, Detail: "score 87.3: cpu 29.1",
			Data: eventData(t, map[string]any{"score": 87.3, "gpus": []any{0, 1}, "numaNode": 0})},
	}}
	second := &v1.ListRunEventsResponse{NextPageToken: "more", After: "0-2", Items: []*v1.Event{
		{Id: "0-2", At: after(2.25), Task: "build", Event: "retried", Node: "a", Attempt: 1, Detail: "exit code 2\nagain in 1s"},
	}}
	script(f, first, second, first, second, first, second)
	showsGolden(t, "runs-events", []string{"text", "json", "jsonl"}, "runs", "events", "nightly", "--task", "build", "--limit", "4", "--gateway", f.url)
	for i, want := range []*v1.ListRunEventsRequest{
		{Id: "nightly", Task: "build", PageSize: 4},
		{Id: "nightly", Task: "build", PageSize: 1, PageToken: "middle"},
	} {
		if !proto.Equal(f.asked[i], want) {
			t.Errorf("asked for %v, want %v", f.asked[i], want)
		}
	}
}

func TestEventsOfAllRuns(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListRunEventsResponse{Items: []*v1.Event{
		{Run: "nightly-2", At: after(60), Task: "build", Event: "failed", Node: "a", Detail: "exit_code: exit code 2"},
		{Run: "nightly-1", At: after(2), Task: "each[3]", Event: "failed", Node: "a", Attempt: 1, Detail: "lost"},
	}})
	showsGolden(t, "runs-events-all", []string{"text", "jsonl"}, "runs", "events", "--event", "failed", "--node", "a", "--since", "2026-03-14T15:09:26Z", "--until", "2026-03-14T15:11:26Z",
		"--gateway", f.url)
	want := &v1.ListRunEventsRequest{Event: "failed", Node: "a", Since: after(0), Until: after(120), PageSize: 1000}
	if !proto.Equal(f.asked[0], want) {
		t.Errorf("asked for %v", f.asked[0])
	}
}

func TestRunsExplain(t *testing.T) {
	f := fake(t)
	script(f, &v1.ExplainTaskResponse{
		Task: "train", State: "queued", Reason: "0 of 3 nodes have 2 free GPUs: a 1, b 0, c none",
		Nodes: []*v1.NodeVerdict{
			{Name: "a", Reasons: []string{"1 of 2 GPUs free", "2 of 4 cores free"}},
			{Name: "b", Feasible: true, Score: 87.34, Parts: []*v1.ScorePart{{Name: "cpu", Value: 29.12}, {Name: "tasks", Value: -5}}},
		},
	})
	if says := showsGolden(t, "runs-explain", []string{"text", "json"}, "runs", "explain", "nightly", "train", "--gateway", f.url); says != "" {
		t.Errorf("it says %q", says)
	}
	script(f, &v1.ExplainTaskResponse{Task: "train", State: "completed", Chosen: "b", Reason: "score 87.3: cpu 29.1, tasks -5.0"})
	if got := run(t, "runs", "explain", "nightly", "train", "--gateway", f.url); got.stdout != "task train is completed on b: score 87.3: cpu 29.1, tasks -5.0\n" {
		t.Errorf("%+v", got)
	}
	script(f, &v1.ExplainTaskResponse{
		Task: "deploy", State: "skipped", Reason: "`parent.test.exitCode == 0` is false: parent.test.exitCode is 1",
		Parents: []*v1.ParentEnd{{Task: "test", State: "failed", Reason: "exit_code: exit code 1"}, {Task: "build", State: "completed"}},
	})
	golden.Check(t, "testdata/runs-explain-skipped.golden", run(t, "runs", "explain", "nightly", "deploy", "--gateway", f.url).stdout)
	if got := run(t, "runs", "explain", "nightly"); got.code != exit.CodeUsage || !strings.Contains(got.stderr, "TASK is missing") || strings.Contains(got.stderr, "RUN TASK") {
		t.Errorf("without a task: %+v", got)
	}
	run(t, "runs", "explain").ends(t, exit.CodeUsage, "RUN TASK is missing")
}

// TestWaitingApprovalShowsWhatItAsks shows and explains an approval that waits for a person.
func TestWaitingApprovalShowsWhatItAsks(t *testing.T) {
	f := fake(t)
	nightly(f)
	ask, err := definition.Parse("w.yaml", []byte(`{name: nightly, tasks: {ask: {type: approval, spec: {approvals: 2, approvers: {roles: [operator], names: [ann], not: submitter},
  inputs: {region: {required: true, enum: [eu, us]}, count: {type: integer, default: 2, description: how many}}}}, on-hold: {type: shell, spec: {command: x}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	f.definition = ask
	f.run.Tasks["ask"] = &v1.Task{State: "paused", Reason: "approval", Type: "approval", Error: "ship it?"}
	golden.Check(t, "testdata/runs-get-approval.golden", run(t, "runs", "get", "nightly", "ask", "--gateway", f.url).stdout)
	script(f, &v1.ExplainTaskResponse{Task: "ask", State: "paused", Reason: "ship it?"})
	golden.Check(t, "testdata/runs-explain-approval.golden", run(t, "runs", "explain", "nightly", "ask", "--gateway", f.url).stdout)
	script(f, &v1.ExplainTaskResponse{Task: "on-hold", State: "paused", Reason: "held"})
	if got := run(t, "runs", "explain", "nightly", "on-hold", "--gateway", f.url); strings.Contains(got.stdout, "approve") {
		t.Errorf("a task that is not an approval: %+v", got)
	}
}

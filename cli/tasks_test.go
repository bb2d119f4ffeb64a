package cli

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/exit"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

// listedTasks returns three pages of tasks; the second is empty.
func listedTasks() []*v1.ListTasksResponse {
	at := timestamppb.New(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	return []*v1.ListTasksResponse{
		{NextPageToken: "2", Items: []*v1.ListedTask{
			{Run: "ci-0k", Workflow: "ci", Task: "each[3]", Type: "shell", State: "running", Node: "n1", StartedAt: at},
		}},
		{NextPageToken: "3", Warnings: []string{"tasks of run bad-1 are left out: its record is gone"}},
		{Items: []*v1.ListedTask{{
			Run: "ci-0a", Workflow: "ci", Task: "test", Type: "container", State: "failed", Reason: "exit_code", Node: "n2", Attempt: 2, ExitCode: proto.Int32(3),
			StartedAt: at, CompletedAt: at, Error: "exit code 3\nand more",
		}}},
	}
}

// TestTasksAreListed checks that a list continues over pages that hold few tasks.
func TestTasksAreListed(t *testing.T) {
	f := fake(t)
	for name, args := range map[string][]string{"tasks-list-text": nil, "tasks-list-json": {"-o", "json"}, "tasks-list-jsonl": {"-o", "jsonl"}} {
		script(f, listedTasks()...)
		got := run(t, append(append([]string{"tasks", "list"}, args...), "--gateway", f.url)...)
		if got.code != 0 || got.stderr != "warning: tasks of run bad-1 are left out: its record is gone\n" {
			t.Errorf("%s: %+v", name, got)
		}
		golden.Check(t, "testdata/"+name+".golden", got.stdout)
	}
}

func TestTasksAreFiltered(t *testing.T) {
	f := fake(t)
	script(f, listedTasks()...)
	run(t, "tasks", "list", "--state", "running", "--type", "shell", "--workflow", "ci", "--node", "n1", "--run", "ci-0k", "--batch", "b", "--limit", "1", "--gateway", f.url).ends(t, 0, "there are more: --page-token 2")
	want := &v1.ListTasksRequest{State: "running", Type: "shell", Workflow: "ci", Node: "n1", Run: "ci-0k", Batch: "b", PageSize: 1}
	if len(f.asked) != 1 || !proto.Equal(f.asked[0], want) {
		t.Errorf("asked for %v", f.asked)
	}
	for _, args := range []string{"--state happy", "--type shel", "--limit 0", "--limit 1001", "more"} {
		if got := run(t, append([]string{"tasks", "list", "--gateway", f.url}, strings.Fields(args)...)...); got.code != exit.CodeUsage || got.stdout != "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

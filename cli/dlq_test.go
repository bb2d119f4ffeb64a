package cli

import (
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

func TestDLQList(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListDeadLettersResponse{NextPageToken: "more", Items: []*v1.DeadLetter{
		{
			Run: "nightly-4g5h6jkm", Task: "build", Type: "shell", Workflow: "nightly", Reason: "exit_code", Error: "exit code 2\nand more", DeadLetteredAt: after(8),
			Attempts: []*v1.Attempt{
				{Claim: 1, Node: "a", State: "failed", Reason: "exit_code", Error: "exit code 1", ExitCode: 1, AssignedAt: after(2), StartedAt: after(2.1), CompletedAt: after(3)},
				{Attempt: 1, Claim: 2, Node: "a", State: "moved", Reason: "lease_lost", ExitCode: -1, StartedAt: after(4), CompletedAt: after(5)}, // is not counted
				{Attempt: 1, Claim: 3, Node: "b", State: "failed", Reason: "exit_code", Error: "exit code 2", ExitCode: 2, AssignedAt: after(6), StartedAt: after(6.1), CompletedAt: after(8)},
			},
		},
		{Run: "b-7", Task: "x", Type: "shell", Generation: 1},
	}})
	showsGolden(t, "dlq-list", []string{"text", "json", "jsonl"}, "dlq", "list", "--gateway", f.url, "--run", "night", "--type", "shell", "--node", "b", "--limit", "7", "--page-token", "x")
	if want := (&v1.ListDeadLettersRequest{Run: "night", Type: "shell", Node: "b", PageSize: 7, PageToken: "x"}); !proto.Equal(f.asked[0], want) {
		t.Errorf("asked for %v", f.asked[0])
	}
}

func TestDLQRetryAndPurge(t *testing.T) {
	f := fake(t)
	script(f, &v1.RetryDeadLetterResponse{Run: "nightly-4g5h6jkm", Tasks: []string{"build", "test"}, Generation: 1})
	script(f, &v1.PurgeDeadLetterResponse{Run: "nightly-4g5h6jkm", Tasks: []string{"build"}})
	for _, test := range []struct {
		args   []string
		asked  proto.Message
		stderr string
	}{
		{[]string{"retry", "night", "build"}, &v1.RetryDeadLetterRequest{Run: "night", Task: "build"}, "run nightly-4g5h6jkm continues with build, test\n"},
		{[]string{"retry", "night", "--all"}, &v1.RetryDeadLetterRequest{Run: "night"}, "run nightly-4g5h6jkm continues with build, test\n"},
		{[]string{"purge", "night", "build"}, &v1.PurgeDeadLetterRequest{Run: "night", Task: "build"}, "purged build of run nightly-4g5h6jkm\n"},
		{[]string{"purge", "night", "--all"}, &v1.PurgeDeadLetterRequest{Run: "night"}, "purged build of run nightly-4g5h6jkm\n"},
	} {
		f.asked = nil
		got := run(t, append(append([]string{"dlq"}, test.args...), "--gateway", f.url)...)
		if got.code != 0 || got.stdout != "" || got.stderr != test.stderr {
			t.Errorf("%v: %+v", test.args, got)
		}
		if len(f.asked) != 1 || !proto.Equal(f.asked[0], test.asked) {
			t.Errorf("%v: asked %v", test.args, f.asked)
		}
	}
	got := run(t, "dlq", "retry", "night", "--all", "-o", "json", "--gateway", f.url)
	if want := "{\n  \"run\": \"nightly-4g5h6jkm\",\n  \"tasks\": [\n    \"build\",\n    \"test\"\n  ],\n  \"generation\": 1\n}\n"; got.stdout != want {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"retry", "night"}, {"purge", "night"}, {"retry", "night", "build", "--all"}, {"retry"}} {
		run(t, append([]string{"dlq"}, args...)...).ends(t, exit.CodeUsage, "")
	}
	f.fail = connect.NewError(connect.CodeAborted, errStopping)
	run(t, "dlq", "retry", "night", "build", "--gateway", f.url).ends(t, exit.CodeNotDone, "")
}

package cli

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// TestQueueShowsGroupsAndAmounts checks the printed queue and the requests for a part of it.
func TestQueueShowsGroupsAndAmounts(t *testing.T) {
	f := fake(t)
	script(f, &v1.GetQueueResponse{
		Tasks: 9004, Runs: 3, Warnings: []string{"tasks of run bad-1 are left out: its record\nis gone"},
		Slots: &v1.QueueAmount{Asked: 9000, Free: 1, Total: 8}, Cores: &v1.QueueAmount{Asked: 4500, Free: 0.25, Total: 16},
		MemoryMb: &v1.QueueAmount{Free: 2048, Total: 16384}, Gpus: &v1.QueueAmount{Asked: 18000},
		Groups: []*v1.QueueGroup{
			{
				Reason: "busy", Text: "0 of 2 nodes have a free slot", Type: "shell", Count: 9000, Runs: 1, OldestQueuedAt: after(0),
				Demand:   &v1.TaskDemand{Cores: 0.5, Gpus: 2, NumaNode: proto.Int32(1), Constraints: []string{"label gpu"}},
				Examples: []*v1.ListedTask{{Run: "ci-0k", Task: "each[7]", State: "queued"}, {Run: "ci-0k", Task: "each[8]", State: "queued"}},
			},
			{Reason: "lock", Text: "waits for the lock db, held by ci-0a", Count: 3, Runs: 2, OldestQueuedAt: after(3), Examples: []*v1.ListedTask{{Run: "ci-0b", Task: "test"}}},
			{Reason: "back_off", Text: "waits to be tried again after a failure", Count: 1, Runs: 1, NotBefore: after(60)},
		},
	})
	if says := showsGolden(t, "queue", []string{"text", "json"}, "queue", "--gateway", f.url, "--workflow", "ci", "--run", "last", "--batch", "b"); says != "warning: tasks of run bad-1 are left out: its record is gone\n" {
		t.Errorf("it says %q", says)
	}
	if want := (&v1.GetQueueRequest{Workflow: "ci", Run: "last", Batch: "b"}); !proto.Equal(f.asked[0], want) {
		t.Errorf("asked for %v", f.asked[0])
	}
	script(f, &v1.GetQueueResponse{})
	if got := run(t, "queue", "--gateway", f.url); got.code != 0 || got.stdout != "no tasks are waiting\n" {
		t.Errorf("an empty queue is %+v", got)
	}
	if got := run(t, "queue", "more"); got.code != exit.CodeUsage || strings.Contains(got.stdout, "COUNT") {
		t.Errorf("with an argument it is %+v", got)
	}
}

// TestOwnersAreListedWithWhatTheyUse checks the tables of shares, quotas and `queue --by owner`.
func TestOwnersAreListedWithWhatTheyUse(t *testing.T) {
	t.Parallel()
	f := fake(t)
	script(f, &v1.ListOwnersResponse{Items: []*v1.Owner{
		{Name: "", Use: &v1.OwnerUse{Entitled: 0.25, Held: 0.5, Running: 2, Cores: 2}},
		{Name: "ann", Share: &v1.Share{Weight: 2}, Quota: &v1.Quota{Cores: 32, Runs: 9}, Use: &v1.OwnerUse{Group: "team", Entitled: 0.75, Lately: 0.1, Waiting: 7, Cores: 1.5}},
	}})
	for args, want := range map[string][]string{
		"queue --by owner": {"(unknown)", "25%", "50%", "ann", "team", "75%", "10%", "7"},
		"shares list":      {"(unknown)", "ann", "75%"},
		"quotas list":      {"ann", "1.5 of 32", "at most 9"},
	} {
		got := run(t, append(strings.Fields(args), "--gateway", f.url)...)
		for _, text := range want {
			if got.code != 0 || !strings.Contains(got.stdout, text) {
				t.Errorf("%s: exit code %d, without %q:\n%s%s", args, got.code, text, got.stdout, got.stderr)
			}
		}
	}
	if got := run(t, "queue", "--by", "owner", "--run", "r", "--gateway", f.url); got.code != exit.CodeUsage || !strings.Contains(got.stderr, "leave out") {
		t.Errorf("with --run: %+v", got)
	}
	if got := run(t, "quotas", "set", "ann", "--gateway", f.url); got.code != exit.CodeUsage || !strings.Contains(got.stderr, "at least one of") {
		t.Errorf("without a limit: %+v", got)
	}
	if got := quotaText(&v1.Quota{Cores: 2.5, Tasks: 1}); got != "2.5 cores, 1 task" {
		t.Errorf("a quota is %q", got)
	}
}

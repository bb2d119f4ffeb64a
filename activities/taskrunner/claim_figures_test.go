package taskrunner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestClaimsAreCountedByHowTheyEnd(t *testing.T) {
	t.Parallel()
	var c claimCounts
	if f := c.figures(); f.GetLastActivityAt() != nil || len(f.GetEnded()) != 0 {
		t.Errorf("at first the figures are %v", f)
	}
	c.takeUp()
	if c.figures().GetLastActivityAt() == nil {
		t.Error("taking up a claim is no activity")
	}
	for _, res := range []*historyv1.ExecuteResponse{
		{State: v1.TaskCompleted}, {State: v1.TaskCompleted}, {State: v1.TaskFailed, Reason: v1.ReasonExitCode}, nil,
		{State: v1.AttemptMoved, Reason: v1.ReasonLeaseLost}, {State: v1.AttemptMoved, Reason: v1.ReasonNoRoom},
	} {
		c.end(res)
	}
	got := c.figures()
	if diff := cmp.Diff(map[string]int32{v1.TaskCompleted: 2, v1.TaskFailed: 2, v1.AttemptMoved: 2}, got.GetEnded()); diff != "" {
		t.Error(diff)
	}
	if got.GetLeasesExpired() != 1 {
		t.Errorf("%d leases have expired", got.GetLeasesExpired())
	}
}

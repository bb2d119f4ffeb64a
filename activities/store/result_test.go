package store_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestGetResult(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	at := time.Unix(1_800_000_000, 0)
	alone, batch := storekey.Result("ci-0k", 0, "build", 0), storekey.Batch("ci-0k", 0, "each[3-9]", 0, 4)
	for key, m := range map[string]*historyv1.ExecuteResponse{
		alone: {State: "failed", Result: &v1.TaskResult{ExitCode: 3}},
		batch: {Node: "n", AssignedAt: timestamppb.New(at), Batch: []*historyv1.MemberResult{
			{Index: 3, StartedMs: 100, TookMs: 20},
			{Index: 9, State: "failed", Reason: "exit_code", StartedMs: -1, Result: &v1.TaskResult{ExitCode: 7}},
		}},
	} {
		if err := s.PutMessage(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := s.GetResult(t.Context(), alone); err != nil || r.GetResult().GetExitCode() != 3 {
		t.Errorf("alone: %v, %v", r, err)
	}
	r, err := s.GetResult(t.Context(), store.MemberReference(batch, 3))
	if err != nil || r.GetState() != "completed" || r.GetNode() != "n" || r.GetResult() == nil || !r.GetStartedAt().AsTime().Equal(at.Add(100*time.Millisecond)) ||
		!r.GetCompletedAt().AsTime().Equal(at.Add(120*time.Millisecond)) {
		t.Errorf("one that left nothing: %v, %v", r, err)
	}
	if r, err := s.GetResult(t.Context(), store.MemberReference(batch, 9)); err != nil || r.GetState() != "failed" || r.GetResult().GetExitCode() != 7 || r.GetStartedAt() != nil {
		t.Errorf("one that failed: %v, %v", r, err)
	}
	// The record of a running batch has the members that have ended, and later more of them.
	if err := s.PutMessage(t.Context(), batch, &historyv1.ExecuteResponse{Batch: []*historyv1.MemberResult{{Index: 3}, {Index: 5, StartedMs: -1}}}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.GetResult(t.Context(), store.MemberReference(batch, 5)); err != nil || r.GetState() != "completed" {
		t.Errorf("one that ended later: %v, %v", r, err)
	}
	for _, missing := range []string{store.MemberReference(batch, 4), store.MemberReference(alone+"x", 3), alone + "x"} {
		if _, err := s.GetResult(t.Context(), missing); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", missing, err)
		}
	}
	if _, err := s.GetResult(t.Context(), batch+"#x"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a bad reference: %v", err)
	}
}

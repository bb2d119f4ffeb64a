package explanation

import (
	"strings"
	"testing"
	"time"

	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// TestTaskOfAWaitingRunWaitsForWhatTheRunWaitsFor checks that the reason of a run that has not begun explains its tasks, as nothing
// that the placement queue says about them applies yet.
func TestTaskOfAWaitingRunWaitsForWhatTheRunWaitsFor(t *testing.T) {
	t.Parallel()
	slot := phrase.SlotWait(1, []string{"conc-queue-a2"})
	for want, run := range map[string]*v1.Run{
		slot: {State: v1.RunPending, Error: slot},
		"the run waits for the approval of an operator": {State: v1.RunPendingApproval, Approval: &v1.RunApproval{State: v1.ApprovalPending}},
		"waits for the run to be resumed: by ann":       {State: v1.RunPaused, Error: "by ann"},
		"": {State: v1.RunRunning, Approval: &v1.RunApproval{State: v1.ApprovalApproved}},
	} {
		v := &runview.View{Run: run}
		if got := waitsFor(v, &v1.Task{State: v1.TaskPending}); got != want {
			t.Errorf("%v: %q, want %q", run, got, want)
		}
		if got := waitsFor(v, &v1.Task{State: v1.TaskCompleted}); got != "" {
			t.Errorf("%v: a completed task waits: %q", run, got)
		}
	}
}

// TestLeaseOfARunningTaskIsExplained checks that people see until when the node of a task may be silent.
func TestLeaseOfARunningTaskIsExplained(t *testing.T) {
	t.Parallel()
	until := timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for notice, want := range map[string]string{"": "its node may be silent until 03:04:05 UTC", "node n has been silent": ""} {
		about := runview.TaskRef{Name: "a", Task: &runview.TaskView{Brief: &v1.Task{State: v1.TaskRunning, Node: "n", Notice: notice}, LeaseUntil: until}}
		if notes := (explainer{}).explainNotes(t.Context(), &runview.View{}, about); notes[0] != notice || strings.Join(notes[1:], "") != want {
			t.Errorf("with the notice %q: %q", notice, notes)
		}
	}
}

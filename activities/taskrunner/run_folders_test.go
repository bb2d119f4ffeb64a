package taskrunner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestRunFoldersLastUntilTheirRunEnds checks which folders of runs are removed.
func TestRunFoldersLastUntilTheirRunEnds(t *testing.T) {
	n := newBench(t, nil)
	n.Folders.Runs = t.TempDir()
	n.IsGenerationOpen = func(_ context.Context, id executor.Identity) (bool, error) {
		switch id.Run {
		case "unknown":
			return false, errors.New("the server is away")
		case "open":
			return id.Generation == 1, nil
		}
		return false, nil
	}
	open := func(run string, generation int32) *historyv1.ExecuteRequest {
		t.Helper()
		req := &historyv1.ExecuteRequest{RunId: run, Chain: "c", Generation: generation, Task: "a", Workspace: &historyv1.TaskWorkspace{Name: "w"}}
		if failed, err := n.openShared(req); failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		sub := filepath.Join(n.sharedDir(req), "sub")
		if err := os.MkdirAll(filepath.Join(sub, "deep"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(sub, 0o500); err != nil {
			t.Fatal(err)
		}
		return req
	}
	requests := map[*historyv1.ExecuteRequest]bool{
		open("open", 1): true, open("open", 0): false, open("over", 0): false, open("unknown", 0): true,
	}
	running := open("over", 3)
	requests[running] = true
	a := n.newAttempt(delivery{}, running)
	n.attempts.enter(a)
	n.sweepRunFolders(t.Context())
	for req, want := range requests {
		if _, err := os.Stat(n.sharedDir(req)); (err == nil) != want {
			t.Errorf("the folder of generation %d of run %s: %v", req.GetGeneration(), req.GetRunId(), err)
		}
	}
	n.attempts.leave(a)
	n.sweepRunFolders(t.Context())
	if left, _ := filepath.Glob(filepath.Join(n.Folders.Runs, "*")); len(left) != 4 {
		t.Errorf("left: %v", left)
	}
}

// TestUsedWorkspaceIsNotMadeAnew checks that an attempt fails whose workspace is gone, and that one that is there is kept as it is.
func TestUsedWorkspaceIsNotMadeAnew(t *testing.T) {
	n := newBench(t, nil)
	n.Folders.Runs = t.TempDir()
	req := &historyv1.ExecuteRequest{RunId: "r", Task: "a", Workspace: &historyv1.TaskWorkspace{Name: "w", Used: true}}
	failed, err := n.openShared(req)
	if err != nil || failed.GetState() != v1.TaskFailed || failed.GetReason() != v1.ReasonWorkspace {
		t.Errorf("%v, %v", failed, err)
	}
	if _, err := os.Stat(n.sharedDir(req)); err == nil {
		t.Error("the folder was made")
	}
	req.Workspace.Used = false
	for range 2 {
		if failed, err := n.openShared(req); failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		if err := os.WriteFile(filepath.Join(n.sharedDir(req), "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	req.Workspace.Used = true
	if failed, err := n.openShared(req); failed != nil || err != nil {
		t.Error(failed, err)
	}
}

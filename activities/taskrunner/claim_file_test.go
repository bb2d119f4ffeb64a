package taskrunner

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// claimFiles are the claim files in a state directory.
func claimFiles(t *testing.T, dir, state string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, claimsFolder, "*"+state))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestLaterWorkerAnswersForADeadOne takes away what a worker leaves that is killed while it holds an attempt that
// does not outlive it, and has the next one answer the activity.
func TestLaterWorkerAnswersForADeadOne(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits, recorded bool // the attempt waits for room; it had completed, and the report was lost
		state, reason   string
	}{
		"it ran":           {state: "lost", reason: "node_lost"},
		"it had completed": {recorded: true, state: "completed"},
		"it waited":        {waits: true, state: "moved", reason: "incarnation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newBench(t, map[string][]fake.Step{"a": {{Block: true}}})
			first.StateDir, first.heartbeat = filepath.Join(t.TempDir(), "state"), 15*time.Second
			room := make(chan struct{})
			if test.waits {
				first.Room = testRoom(func(ctx context.Context) error {
					select {
					case <-room:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			}
			e := first.start(t.Context(), request("a"))
			state := claimWaiting
			if !test.waits {
				first.runs("a")
				state = claimStarted
			}
			eventually(t, "there is a claim file", func() bool {
				files := claimFiles(t, first.StateDir, state)
				if len(files) != 1 {
					return false
				}
				info, err := os.Stat(files[0])
				return err == nil && info.Size() > 0 // it is written in place
			})
			if info, err := os.Stat(claimFiles(t, first.StateDir, state)[0]); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the claim file is %v, %v", info, err)
			}
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(first.StateDir)); err != nil {
				t.Fatal(err)
			}
			close(room)
			first.fake.Release("a")
			e.answer()
			if left := claimFiles(t, first.StateDir, ""); len(left) != 0 {
				t.Errorf("%v are left of an attempt that has its answer", left)
			}

			second := newBench(t, nil)
			second.StateDir = dir
			if test.recorded {
				record := &v1.ExecuteResponse{State: "completed", Node: "n", Result: &v1.TaskResult{Stdout: "done\n"}}
				if err := second.Store.PutMessage(t.Context(), storekey.Result("r-1", 0, "a", 0), record); err != nil {
					t.Fatal(err)
				}
			}
			end := second.Recover(t.Context())
			eventually(t, "the activity is answered", func() bool { return second.server.answered("token") != nil })
			end(t.Context())
			want(t, second.server.answered("token"), test.state, test.reason)
			if left := claimFiles(t, dir, ""); len(left) != 0 {
				t.Errorf("%v are left after the answer", left)
			}
		})
	}
}

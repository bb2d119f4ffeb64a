package taskrunner

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// claimFiles returns the claim files in a state directory.
func claimFiles(t *testing.T, dir, state string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, claimsFolder, "*"+state))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestLaterWorkerAnswersForADeadOne copies the state of a worker that is killed during an attempt that cannot outlive it,
// and checks that the next worker answers the activity.
func TestLaterWorkerAnswersForADeadOne(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits, recorded bool // waits: the attempt waits for room; recorded: it had completed, and the report was lost
		state, reason   string
	}{
		"it ran":           {state: "lost", reason: "node_lost"},
		"it had completed": {recorded: true, state: "completed"},
		"it waited":        {waits: true, state: "moved", reason: "incarnation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newBench(t, map[string][]fake.Step{"a": {{Block: true}}})
			first.State.Dir, first.heartbeat = filepath.Join(t.TempDir(), "state"), time.Minute
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
				state = claimRunning
			}
			testneeds.Await(t, "there is a claim file", func() bool {
				files := claimFiles(t, first.State.Dir, state)
				if len(files) != 1 {
					return false
				}
				info, err := os.Stat(files[0])
				return err == nil && info.Size() > 0 // the file is written in place
			})
			if info, err := os.Stat(claimFiles(t, first.State.Dir, state)[0]); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the claim file is %v, %v", info, err)
			}
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(first.State.Dir)); err != nil {
				t.Fatal(err)
			}
			close(room)
			first.fake.Release("a")
			e.answer()
			if left := claimFiles(t, first.State.Dir, ""); len(left) != 0 {
				t.Errorf("%v are left of an attempt that has its answer", left)
			}

			second := newBench(t, nil)
			second.State.Dir = dir
			if test.recorded {
				record := &historyv1.ExecuteResponse{State: "completed", Node: "n", Result: &v1.TaskResult{Stdout: "done\n"}}
				if err := second.Store.PutMessage(t.Context(), storekey.Result("r-1", 0, "a", 0), record); err != nil {
					t.Fatal(err)
				}
			}
			end := second.Recover(t.Context())
			testneeds.Await(t, "the activity is answered", func() bool { return second.server.answered("token") != nil })
			end(t.Context())
			res := second.server.answered("token")
			want(t, res, test.state, test.reason)
			if ran := test.state == v1.TaskLost; (res.GetStartedAt() != nil) != ran {
				t.Errorf("its program started at %v", res.GetStartedAt())
			}
			if left := claimFiles(t, dir, ""); len(left) != 0 {
				t.Errorf("%v are left after the answer", left)
			}
		})
	}
}

// TestLaterWorkerHandsOnTheCheckpoint lets a worker answer for a dead one after an attempt with a checkpoint. The next
// attempt continues from that checkpoint, although no heartbeat time-out reports it to the run.
func TestLaterWorkerHandsOnTheCheckpoint(t *testing.T) {
	t.Parallel()
	first := newBench(t, nil).withShell()
	first.State.Dir, first.heartbeat = filepath.Join(t.TempDir(), "state"), time.Minute
	req := request("a")
	req.Env = map[string]string{"NEXT": "so far"}
	req.Spec = command(t, checkpointing+"while :; do sleep 0.02; done")
	e := first.start(t.Context(), req)
	testneeds.Await(t, "the checkpoint is kept", func() bool { return len(claimFiles(t, first.State.Dir, claimCheckpoint)) == 1 })
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(first.State.Dir)); err != nil {
		t.Fatal(err)
	}
	first.BeginDrain(time.Now(), "")
	e.answer()
	if left := claimFiles(t, first.State.Dir, ""); len(left) != 0 {
		t.Errorf("%v are left of an attempt that has its answer", left)
	}
	abandoned := filepath.Join(dir, claimsFolder, "0123"+claimCheckpoint)
	if err := os.WriteFile(abandoned, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	second := newBench(t, nil)
	second.State.Dir = dir
	end := second.Recover(t.Context())
	testneeds.Await(t, "the activity is answered", func() bool { return second.server.answered("token") != nil })
	end(t.Context())
	res := second.server.answered("token")
	want(t, res, "lost", "node_lost")
	if got := string(res.GetCheckpoint().GetData()); got != "so far" {
		t.Errorf("the answer has the checkpoint %q", got)
	}
	if left := claimFiles(t, dir, ""); len(left) != 0 {
		t.Errorf("%v are left after the answer", left)
	}
}

// The saved checkpoint of a batch belongs only to the member that ran.
func TestKeptCheckpointBelongsToTheMemberThatRan(t *testing.T) {
	t.Parallel()
	f := &claimFile{checkpoint: filepath.Join(t.TempDir(), "a"+claimCheckpoint)}
	f.saveCheckpoint(1, &historyv1.Checkpoint{Data: []byte("of one")})
	members := membersOf(batchOf(0, 1, 2))
	for ended, want := range []string{"", "of one", ""} {
		res := &historyv1.ExecuteResponse{}
		for i := range ended {
			res.Batch = append(res.Batch, &historyv1.MemberResult{Index: int32(i)})
		}
		if got := string(f.savedCheckpoint(firstUnended(members, res)).GetData()); got != want {
			t.Errorf("after %d have ended: %q, want %q", ended, got, want)
		}
	}
	f.saveCheckpoint(2, nil)
	if got := f.savedCheckpoint(1); got != nil {
		t.Errorf("after it was removed: %v", got)
	}
}

package taskrunner

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor/workspace"
	"switchyard/activities/logs"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// checkpointing is a script that prints its checkpoint and writes another one. The test appends how it ends.
const checkpointing = `cat "$SWITCHYARD_CHECKPOINT" 2>/dev/null; printf %s "$NEXT" >"$SWITCHYARD_CHECKPOINT.new" && mv "$SWITCHYARD_CHECKPOINT.new" "$SWITCHYARD_CHECKPOINT"; `

// The next attempt gets the checkpoint, unless the task has completed.
func TestCheckpointTravels(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 10, "large": 100_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil).withShell()
			req := request("a")
			req.Spec = command(t, strings.ReplaceAll(checkpointing, `printf %s "$NEXT"`, "head -c $SIZE /dev/zero | tr '\\0' x")+"exit 3")
			req.Env = map[string]string{"SIZE": map[bool]string{true: "10", false: "100000"}[size == 10]}
			first := b.start(t.Context(), req).answer()
			want(t, first, "failed", "exit_code")
			if inline := len(first.GetCheckpoint().GetData()) == size; inline != (size == 10) || inline == (first.GetCheckpoint().GetKey() != "") {
				t.Fatalf("the checkpoint is %v", first.GetCheckpoint())
			}
			next := request("a")
			next.Attempt, next.Claim, next.Checkpoint = 1, 2, first.GetCheckpoint()
			next.Spec = command(t, `wc -c <"$SWITCHYARD_CHECKPOINT"; exit 4`)
			second := b.start(t.Context(), next).answer()
			if got := strings.TrimSpace(second.GetResult().GetStdout()); got != req.GetEnv()["SIZE"] || second.GetCheckpoint() == nil {
				t.Errorf("the next attempt found %s bytes and left %v", got, second.GetCheckpoint())
			}
			next.Spec, next.Claim = command(t, "true"), 3
			if third := b.start(t.Context(), next).answer(); third.GetState() != "completed" || third.GetCheckpoint() != nil {
				t.Errorf("one that completes leaves %v", third)
			}
		})
	}
}

// The heartbeats of a running attempt carry its checkpoint.
func TestCheckpointIsInTheHeartbeat(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil).withShell()
	b.heartbeat, b.Timing.BeatInterval = time.Minute, time.Second
	req := request("a")
	req.Env = map[string]string{"NEXT": "so far"}
	req.Spec = command(t, checkpointing+"while :; do sleep 0.02; done")
	e := b.start(t.Context(), req)
	testneeds.Await(t, "a beat has the checkpoint", func() bool {
		beats := b.server.heard()
		return len(beats) > 0 && string(beats[len(beats)-1].GetCheckpoint().GetData()) == "so far" && beats[len(beats)-1].GetSpawned()
	})
	b.BeginDrain(time.Now(), "")
	res := e.answer()
	want(t, res, "moved", "draining")
	if string(res.GetCheckpoint().GetData()) != "so far" {
		t.Errorf("one that is moved leaves %v", res.GetCheckpoint())
	}
}

// A checkpoint is checked at least once a second, however long the heartbeat interval is.
func TestCheckpointIsLookedForEverySecond(t *testing.T) {
	for _, beat := range []time.Duration{0, firstBeat, 5 * time.Second, time.Hour} {
		pause := firstBeat
		for range 20 {
			if pause = nextLook(pause, beat); pause > time.Second || pause < firstBeat {
				t.Fatalf("a beat every %v: a pause of %v", beat, pause)
			}
		}
	}
}

// A heartbeat loses neither the start nor the checkpoint of an attempt that reports both at once.
func TestCheckpointAsTheAttemptStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ws, err := b.Folders.Workspaces.Prepare(workspace.Request{Task: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ws.Env()["SWITCHYARD_CHECKPOINT"], []byte("so far"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		a := b.newAttempt(delivery{activityRef: activityRef{heartbeat: time.Hour}}, request("a"))
		k := &checkpointer{a: a}
		k.watch(ws, &a.members[0])
		var both sync.WaitGroup
		both.Go(func() { k.publish(t.Context()) })
		both.Go(func() { a.spawned(time.Now()) })
		both.Wait()
		if p := a.progress.Load(); !p.GetSpawned() || string(p.GetCheckpoint().GetData()) != "so far" {
			t.Fatalf("the beat says %v", p)
		}
	}
	if err := ws.Close(); err != nil {
		t.Error(err)
	}
}

// A checkpoint that is too large is reported in the log, and the previous one stays.
func TestCheckpointTooLarge(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil).withShell()
	req := request("a")
	req.Checkpoint = &historyv1.Checkpoint{Data: []byte("before")}
	req.Spec = command(t, `head -c 9000000 /dev/zero >"$SWITCHYARD_LOCAL_TEMP_DIR/new"; mv "$SWITCHYARD_LOCAL_TEMP_DIR/new" "$SWITCHYARD_CHECKPOINT"; exit 1`)
	res := b.start(t.Context(), req).answer()
	want(t, res, "failed", "exit_code")
	if string(res.GetCheckpoint().GetData()) != "before" || res.GetResult().GetStderr() != "" {
		t.Errorf("it leaves %.100v", res)
	}
	entries, _, _, err := logs.Read(t.Context(), b.Store, logs.Attempt{Run: "r-1", Task: "a", Claim: 1}, 0)
	if err != nil || len(entries) != 1 || !strings.Contains(string(entries[0].GetData()), "SWITCHYARD_CHECKPOINT: is larger than 8192 KiB") {
		t.Errorf("the log says %v, error %v", entries, err)
	}
}

// If the store has lost a checkpoint, the attempt starts from scratch.
func TestCheckpointIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil).withShell()
	req := request("a")
	req.Checkpoint = &historyv1.Checkpoint{Key: "runs/r-1/checkpoints/a.0.9"}
	req.Spec = command(t, `test -e "$SWITCHYARD_CHECKPOINT" || exit 5`)
	if res := b.start(t.Context(), req).answer(); res.GetResult().GetExitCode() != 5 || res.GetCheckpoint() != nil {
		t.Errorf("got %v", res)
	}
}

// Each member of a batch has its own checkpoint.
func TestCheckpointsOfABatch(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil).withShell()
	req := batchOf(0, 1, 2)
	req.Batch[1].Checkpoint = &historyv1.Checkpoint{Data: []byte("of one")}
	req.Env = map[string]string{"NEXT": "new"}
	req.Spec = command(t, `[ $SWITCHYARD_INDEX = 2 ] || { cat "$SWITCHYARD_CHECKPOINT"; exit 1; }; `+checkpointing+`exit 1`)
	got := b.start(t.Context(), req).answer().GetBatch()
	wantEnds(t, got, "0 failed exit_code", "1 failed exit_code", "2 failed exit_code")
	if got[0].GetCheckpoint() != nil || string(got[1].GetCheckpoint().GetData()) != "of one" || got[1].GetResult().GetStdout() != "of one" ||
		string(got[2].GetCheckpoint().GetData()) != "new" || got[2].GetResult().GetStdout() != "" {
		t.Errorf("got %v", got)
	}
}

// The heartbeats never assign the checkpoint of one member to another.
func TestCheckpointBelongsToTheMemberThatRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, a := b.accept(t.Context(), delivery{activityRef: activityRef{heartbeat: time.Hour}}, batchOf(0, 1))
	defer a.end()
	gathered := b.newBatch(a)
	w := &work{node: b.Node, attempt: a, log: taskLog{Writer: logs.NewWriter(b.Store, logs.Attempt{Run: "r-1", Task: "a[0-1]"}, logs.Options{})}}
	k := w.startCheckpointer(ctx, gathered)
	k.stop() // the test polls instead
	members := a.members
	ws, err := b.Folders.Workspaces.Prepare(workspace.Request{Task: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(ws.Close(), k.log.Close(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	write := func(text string) {
		if err := os.WriteFile(ws.Env()["SWITCHYARD_CHECKPOINT"], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says := func(ended int32, checkpoint string) {
		t.Helper()
		k.publish(t.Context())
		if p := a.progress.Load(); p.GetEnded() != ended || string(p.GetCheckpoint().GetData()) != checkpoint {
			t.Errorf("the beat says %v, want %d and %q", p, ended, checkpoint)
		}
	}
	k.watch(ws, &members[0])
	write("of zero")
	says(0, "of zero")
	if got := k.final(t.Context(), true); string(got.GetData()) != "of zero" {
		t.Errorf("it leaves %v", got)
	}
	if err := gathered.add(t.Context(), &members[0], &historyv1.ExecuteResponse{State: "failed"}, false); err != nil {
		t.Fatal(err)
	}
	says(1, "")
	if err := ws.Next(workspace.Request{Task: "a"}); err != nil {
		t.Fatal(err)
	}
	k.watch(ws, &members[1])
	write("of one")
	says(1, "of one")
}

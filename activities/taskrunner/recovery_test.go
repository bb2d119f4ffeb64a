package taskrunner

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// CompleteActivity records the answer to an activity.
func (s *server) CompleteActivity(_ context.Context, token []byte, result any, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed[string(token)] {
		return serviceerror.NewNotFound("no such activity")
	}
	if s.busy > 0 {
		s.busy--
		return errAway
	}
	if s.closed == nil {
		s.closed = map[string]bool{}
	}
	s.closed[string(token)] = true
	if s.answers == nil {
		s.answers = map[string]*historyv1.ExecuteResponse{}
	}
	res, _ := result.(*historyv1.ExecuteResponse)
	if err != nil {
		res = failedAnswer(err)
	}
	s.answers[string(token)] = res
	return nil
}

// answered returns the recorded answer of an activity, or nil.
func (s *server) answered(token string) *historyv1.ExecuteResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[token]
}

const reattachedID = "r-1/a/c1"

// heir is a node that restarts after its worker was killed while task a ran.
type heir struct {
	*bench
	survivor *fake.Survivor
	end      func(context.Context)
	held     *places
}

// places is a Room that reports which places it restores and releases.
type places struct{ restored, released chan string }

func (p *places) Acquire(context.Context, *historyv1.ExecuteRequest) (func(), error) {
	return func() {}, nil
}

func (p *places) Restore(req *historyv1.ExecuteRequest, _ time.Time) (func(), error) {
	p.restored <- req.GetTask()
	return func() { p.released <- req.GetTask() }, nil
}

// killed starts task a on a node and copies the state that a dead worker would leave at that moment. It returns the node
// that starts from the copy. script defines how the attempt continues. change, if not nil, changes the request.
func killed(t *testing.T, script fake.Step, change func(*historyv1.ExecuteRequest)) *heir {
	t.Helper()
	first := newBench(t, nil)
	first.State.Dir = filepath.Join(t.TempDir(), "state")
	step := fake.Step{Stdout: "one\n", Block: true, Workload: &v1.Workload{Container: "3f2a"}}
	old := fake.NewSurvivor("shell", map[string][]fake.Step{"a": {step}})
	first.fake, first.Executors = old.Executor, map[string]executor.Executor{"shell": old}
	first.heartbeat = time.Minute
	first.Secrets = testSecrets{"env:TOKEN": secretValue}
	req := request("a")
	if change != nil {
		change(req)
	}
	e := first.start(t.Context(), req)
	first.runs("a")
	testneeds.Await(t, "its output is in the log", func() bool {
		entries, _, _, err := logs.Read(t.Context(), first.Store, attemptLog, 0)
		return err == nil && len(entries) > 0
	})
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(first.State.Dir)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(first.State.Dir, "*"+recoverySuffix))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v are kept, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the keepsake is %v, %v", info.Mode(), err)
	}
	// The rest uses the copy; the log of the first worker is discarded.
	second := newBench(t, nil)
	copyLog(t, first.Store, second.Store)
	first.fake.Release("a")
	e.answer()
	if files, _ := filepath.Glob(filepath.Join(first.State.Dir, "*"+recoverySuffix)); len(files) != 0 {
		t.Errorf("%v are left of an attempt that has been answered", files)
	}
	second.State.Dir, second.heartbeat = dir, first.heartbeat
	left := executor.Leftover{
		ID: reattachedID, Identity: executor.Identity{Node: "n"}, Running: script.Block, StartedAt: time.Now().Add(-time.Second), Env: old.Calls()[0].Attempt.Env,
	}
	h := &heir{bench: second, survivor: fake.NewSurvivor("shell", map[string][]fake.Step{"a": {script}}, left)}
	second.fake, second.Executors = h.survivor.Executor, map[string]executor.Executor{"shell": h.survivor}
	h.held = &places{make(chan string, 10), make(chan string, 10)}
	second.Room = h.held
	return h
}

var attemptLog = logs.Attempt{Run: "r-1", Task: "a", Claim: 1}

// copyLog copies the first chunk of the log.
func copyLog(t *testing.T, from, to *store.Store) {
	t.Helper()
	key := storekey.LogChunk("r-1", 0, "a", 0, 1, 0)
	chunk, err := from.Get(t.Context(), key)
	if err == nil {
		err = to.Put(t.Context(), key, chunk)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *heir) recovers() {
	h.t.Helper()
	h.end = h.Recover(h.t.Context())
	h.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		h.end(ctx)
		if ctx.Err() != nil {
			h.t.Error("the recovery does not end")
		}
	})
}

// settled waits until nothing is left of the attempt's state.
func (h *heir) settled() {
	h.t.Helper()
	testneeds.Await(h.t, "it is settled", func() bool {
		files, err := filepath.Glob(filepath.Join(h.State.Dir, "*"+recoverySuffix))
		return err == nil && len(files) == 0
	})
}

// printed returns the whole log.
func (h *heir) printed() (text string) {
	h.t.Helper()
	entries, _, ended, err := logs.Read(h.t.Context(), h.Store, attemptLog, 0)
	if err != nil || !ended {
		h.t.Errorf("the log: ended %t, %v", ended, err)
	}
	for _, e := range entries {
		text += string(e.GetData())
	}
	return text
}

// An attempt that the server wants continues, and its end is reported to its original activity.
func TestReattachAfterTheWorkerDied(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Stdout: "one\ntwo\n", Block: true, Output: "n=2"}, nil)
	h.server.busy = 1
	isGuarded := false
	h.State.Guard = func() error { isGuarded = true; return nil }
	h.recovers()
	if !isGuarded {
		t.Error("nothing enforces the lease of the attempt if this worker dies, too")
	}
	testneeds.Await(t, "it has its place and beats", func() bool { return len(h.held.restored) == 1 && h.live() == 1 && len(h.server.heard()) > 0 })
	beat := h.server.heard()[0]
	if !beat.GetSpawned() || beat.GetStartedAt() == nil || beat.GetClaim() != 1 || beat.GetWorkload().GetContainer() != "3f2a" {
		t.Errorf("the first beat says %v", beat)
	}
	h.runs("a")
	h.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	res := h.server.answered("token")
	want(t, res, "completed", "")
	if r := res.GetResult(); r.GetStdout() != "one\ntwo\n" || r.GetOutput().GetFields()["n"].GetStringValue() != "2" {
		t.Errorf("answer %v", res)
	}
	if res.GetNode() != "n" || !res.GetStartedAt().AsTime().Equal(beat.GetStartedAt().AsTime()) || !res.GetAssignedAt().AsTime().Before(res.GetStartedAt().AsTime()) {
		t.Errorf("when and where: %v", res)
	}
	h.settled()
	if text := h.printed(); text != "one\ntwo\n" {
		t.Errorf("the log is %q", text)
	}
	testneeds.Await(t, "its place is free", func() bool { return len(h.held.released) == 1 && h.live() == 0 })
	if removed := h.survivor.Removed(); len(removed) != 0 {
		t.Errorf("%v removed", removed)
	}
	if left, _ := os.ReadDir(filepath.Join(h.State.Dir, survivorsFolder)); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}

// TestOnlyAttemptsThatLiveAreSaidToContinue checks that the log names no attempt of an earlier worker that has ended.
func TestOnlyAttemptsThatLiveAreSaidToContinue(t *testing.T) {
	t.Parallel()
	for name, lives := range map[string]bool{"lives": true, "dead": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := killed(t, fake.Step{Block: true}, nil)
			messages := &messageLog{}
			h.Logger = slog.New(slog.NewTextHandler(messages, nil))
			if !lives {
				h.survivor.DropLeftover(reattachedID)
			}
			h.recovers()
			if lives {
				h.runs("a")
				h.fake.Release("a")
			}
			testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
			h.settled()
			if text := messages.String(); strings.Contains(text, "continues") != lives {
				t.Errorf("the log says %s", text)
			}
		})
	}
}

// The temporary directory of an attempt that outlives its worker is removed with the attempt. Leftovers of earlier
// attempts are removed when the worker starts.
func TestReattachedAttemptKeepsItsTemporaryDirectory(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, nil)
	h.State.TempDir = filepath.Join(t.TempDir(), "temp")
	k := h.keepsake()
	k.state.TempDir = filepath.Join(h.State.TempDir, k.state.Workspace)
	h.rewrite(k)
	stray := filepath.Join(h.State.TempDir, "attempt-1")
	for _, dir := range []string{k.state.TempDir, stray} {
		if err := os.MkdirAll(filepath.Join(dir, "mine"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.recovers()
	h.runs("a")
	for dir, kept := range map[string]bool{k.state.TempDir: true, stray: false} {
		if _, err := os.Stat(dir); (err == nil) != kept {
			t.Errorf("%s: %v", dir, err)
		}
	}
	h.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	h.settled()
	testneeds.Await(t, "its place is free", func() bool { return len(h.held.released) == 1 })
	if err := h.State.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(h.State.TempDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}

// The time-out counts from the start of the program, including the time without a worker.
func TestReattachedAttemptHasItsTimeout(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, func(req *historyv1.ExecuteRequest) { req.Timeout = durationpb.New(time.Hour) })
	k := h.keepsake()
	k.state.StartedAt = time.Now().Add(-time.Hour)
	h.rewrite(k)
	h.recovers()
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	want(t, h.server.answered("token"), "failed", "timeout")
}

// Neither past suspensions nor the current one count towards the time-out.
func TestReattachedAttemptIsSuspended(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, func(req *historyv1.ExecuteRequest) { req.Timeout = durationpb.New(time.Hour) })
	k := h.keepsake()
	now := time.Now()
	k.state.StartedAt, k.state.Suspended, k.state.SuspendedAt = now.Add(-4*time.Hour), time.Hour, now.Add(-2*time.Hour-30*time.Minute)
	h.rewrite(k)
	h.recovers()
	h.runs("a")
	steer := func(action string) {
		t.Helper()
		res, err := h.Steer(t.Context(), &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: action})
		if err != nil || res.GetRefused() != "" {
			t.Fatalf("%s: %v, %v", action, res, err)
		}
	}
	steer("pause") // its engine suspends the attempt; the fake does not support that
	if k := h.keepsake().state; !k.SuspendedAt.Equal(now.Add(-2*time.Hour - 30*time.Minute)) {
		t.Errorf("it stands still since %v", k.SuspendedAt)
	}
	steer("resume")
	if k := h.keepsake().state; !k.SuspendedAt.IsZero() || k.Suspended.Round(time.Hour/2) != 3*time.Hour+time.Hour/2 {
		t.Errorf("it stood still for %v, since %v", k.Suspended, k.SuspendedAt)
	}
	if a := h.attempts.findClaim("r-1", "a", 1); a == nil || a.steering.limit.left.Round(time.Minute) != 30*time.Minute {
		t.Errorf("%v of its time are left", a.steering.limit.left)
	}
	h.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	want(t, h.server.answered("token"), "completed", "")
}

// keepsake returns the recovery file that the dead worker has left.
func (h *heir) keepsake() *orphan {
	h.t.Helper()
	// orphans would remove the temporary file of a replacement in progress.
	paths, err := filepath.Glob(filepath.Join(h.State.Dir, "*"+recoverySuffix))
	if err != nil || len(paths) != 1 {
		h.t.Fatalf("%v, %v", paths, err)
	}
	found, err := readOrphan(paths[0])
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

func (h *heir) rewrite(l *orphan) {
	h.t.Helper()
	if err := l.state.write(l.path); err != nil {
		h.t.Fatal(err)
	}
}

// An attempt that was cancelled while no worker ran is stopped by the next worker.
func TestReattachedAttemptIsCancelled(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, nil)
	h.server.say(func(int, *historyv1.ExecuteProgress) error { return temporal.NewCanceledError() })
	h.recovers()
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	want(t, h.server.answered("token"), "cancelled", "cancelled")
}

// The next activity of a run takes over a reattached attempt like any other.
func TestReattachedAttemptIsHandedOver(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Stdout: "one\ntwo\n", Block: true}, nil)
	h.recovers()
	h.runs("a")
	if n := h.detach("a", time.Hour); n != 0 {
		t.Fatal("it is not detached")
	}
	testneeds.Await(t, "the first activity is answered", func() bool { return h.server.answered("token") != nil })
	want(t, h.server.answered("token"), "detached", "")
	next := h.startAs(t.Context(), "two", reattachment(request("a")))
	testneeds.Await(t, "the keepsake has the other token", func() bool { return string(h.keepsake().state.Token) == "two" })
	h.fake.Release("a")
	want(t, next.answer(), "completed", "")
}

// If a worker dies between two activities of a run, the second activity gets the attempt.
func TestReattachBetweenTwoActivities(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, nil)
	k := h.keepsake()
	k.state.AloneUntil = time.Now().Add(time.Hour)
	h.rewrite(k)
	h.server.close("token")
	h.recovers()
	h.runs("a")
	if h.lease().KillAt().Sub(executor.Now()) < 50*time.Minute {
		t.Error("the lease is short")
	}
	next := h.startAs(t.Context(), "two", reattachment(request("a")))
	testneeds.Await(t, "the next activity beats", func() bool { return h.server.hears() == "two" })
	h.fake.Release("a")
	want(t, next.answer(), "completed", "")
}

// A checkpoint that the dead worker did not report survives the next worker, too.
func TestReattachedCheckpoint(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true, Result: executor.Result{ExitCode: 1}}, nil)
	ws := filepath.Join(h.State.Dir, survivorsFolder, h.keepsake().state.Workspace)
	if err := os.WriteFile(filepath.Join(ws, "checkpoint"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.recovers()
	testneeds.Await(t, "it beats", func() bool { return len(h.server.heard()) > 0 })
	if got := h.server.heard()[0].GetCheckpoint().GetData(); string(got) != "half" {
		t.Errorf("the first beat has %q", got)
	}
	h.runs("a")
	h.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	if got := h.server.answered("token").GetCheckpoint().GetData(); string(got) != "half" {
		t.Errorf("the answer has %q", got)
	}
}

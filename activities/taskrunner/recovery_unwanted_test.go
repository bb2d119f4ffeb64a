package taskrunner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// An attempt that the server does not know any more is ended.
func TestUnwantedSurvivor(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, nil)
	h.server.close("token")
	h.recovers()
	h.settled()
	if removed := h.survivor.Removed(); !slices.Equal(removed, []string{reattachedID}) || len(h.fake.Calls()) != 0 {
		t.Errorf("%v are removed, %v continue", removed, h.fake.Calls())
	}
	if text := h.printed(); !strings.HasPrefix(text, "one\n[switchyard: ended after") {
		t.Errorf("the log is %q", text)
	}
	testneeds.Await(t, "its place is free", func() bool { return len(h.held.released) == 1 })
}

// If an unwanted attempt had completed without reporting, the next attempt gets its result.
func TestUnwantedSurvivorHadCompleted(t *testing.T) {
	t.Parallel()
	for state, step := range map[string]fake.Step{"completed": {Stdout: "one\ntwo\n", Output: "n=2"}, "": fake.Exit(3)} {
		h := killed(t, step, nil)
		h.server.close("token")
		h.recovers()
		h.settled()
		var record historyv1.ExecuteResponse
		err := h.Store.GetMessage(t.Context(), storekey.Result("r-1", 0, "a", 0), &record)
		if state == "" && !errors.Is(err, store.ErrNotFound) || state != "" && err != nil || record.GetState() != state {
			t.Errorf("the record is %v, %v", &record, err)
		}
		if state == "" {
			continue
		}
		if text := h.printed(); text != "one\ntwo\n" {
			t.Errorf("the log is %q", text)
		}
		again := request("a")
		again.Claim, again.Attempt, again.Unacknowledged = 2, 1, []int32{0}
		if res := h.startAs(t.Context(), "two", again).answer(); res.GetResult().GetStdout() != "one\ntwo\n" {
			t.Errorf("answer %v", res)
		}
	}
}

// While the server is away, the recovery waits for its answer until the lease is over.
func TestSurvivorWithoutAServer(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Block: true}, nil)
	h.server.say(func(n int, _ *historyv1.ExecuteProgress) error {
		if n < 1 {
			return errAway
		}
		return nil
	})
	h.recovers()
	h.runs("a")
	h.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })

	late := killed(t, fake.Step{Block: true}, nil)
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(late.keepsake().path, past, past); err != nil {
		t.Fatal(err)
	}
	late.server.say(func(int, *historyv1.ExecuteProgress) error { return errAway })
	late.recovers()
	late.settled()
	if removed := late.survivor.Removed(); len(removed) != 1 {
		t.Errorf("%v are removed", removed)
	}
}

// An engine that is away delays neither the start of the node nor the heartbeats of its attempts.
func TestSurvivorWithoutAnEngine(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Stdout: "one\n", Block: true}, nil)
	h.survivor.FailSurvivors(errors.New("no engine"))
	h.recovers()
	testneeds.Await(t, "it beats on", func() bool { return len(h.server.heard()) > 1 })
	other := request("b")
	want(t, h.startAs(t.Context(), "b", other).answer(), "moved", "no_executor")
	h.survivor.FailSurvivors(nil)
	h.runs("a")
	h.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	want(t, h.server.answered("token"), "completed", "")
	want(t, h.startAs(t.Context(), "b", other).answer(), "completed", "")
}

// An attempt that is not there any more gets its recorded answer. Without a record it is lost, or moved if it had not
// started.
func TestSurvivorIsGone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		recorded, started bool
		state, reason     string
	}{
		"recorded":    {true, true, "completed", ""},
		"lost":        {false, true, "lost", "node_lost"},
		"not started": {false, false, "moved", "incarnation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := killed(t, fake.Step{Block: true}, nil)
			h.survivor.Leaves = true
			h.survivor.DropLeftover(reattachedID)
			k := h.keepsake()
			if !test.started {
				k.state.StartedAt = time.Time{}
				h.rewrite(k)
			}
			if test.recorded {
				if err := h.Store.PutMessage(t.Context(), storekey.Result("r-1", 0, "a", 0), &historyv1.ExecuteResponse{State: "completed"}); err != nil {
					t.Fatal(err)
				}
			}
			h.recovers()
			testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
			res := h.server.answered("token")
			want(t, res, test.state, test.reason)
			if ended := len(h.survivor.Removed()) == 1; ended != test.started {
				t.Errorf("what may be left of it is ended before the answer: %v", ended)
			}
			if test.state == v1.TaskLost && res.GetStartedAt() == nil {
				t.Error("it does not say when its program started")
			}
			h.settled()
		})
	}
}

// Attempts without a recovery file are ended, and lasting ones once their runs do not wait for them. Attempts of another fleet's
// node with the same name are left alone.
func TestUnknownSurvivors(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.State.Dir, b.Fleet = filepath.Join(t.TempDir(), "state"), "ours"
	leftover := func(id, fleet, node string) executor.Leftover {
		return executor.Leftover{ID: id, Identity: executor.Identity{Node: node, Fleet: fleet}, Running: true}
	}
	s := fake.NewSurvivor("shell", nil, leftover("1", "ours", "n"), leftover("2", "theirs", "n"), leftover("3", "ours", "m"))
	wanted := leftover("5", "ours", "n")
	wanted.Identity.Run = "open"
	lasting := fake.NewSurvivor(v1.TypeVPS, nil, leftover("4", "ours", "n"), wanted)
	b.Executors = map[string]executor.Executor{"shell": s, v1.TypeVPS: lasting}
	b.Timing.WantedInterval = time.Millisecond
	var asked atomic.Int32
	b.Wanted = func(_ context.Context, id executor.Identity) (bool, error) {
		if id.Run != "open" {
			return false, nil
		}
		asked.Add(1)
		return true, nil
	}
	folder := filepath.Join(b.State.Dir, survivorsFolder, "attempt-1")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.State.Dir, "x"+recoverySuffix), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	end := b.Recover(t.Context())
	testneeds.Await(t, "it is removed", func() bool { return len(s.Removed()) > 0 && len(lasting.Removed()) > 0 && asked.Load() > 1 })
	end(t.Context())
	if removed := s.Removed(); !slices.Equal(removed, []string{"1"}) {
		t.Errorf("%v are removed", removed)
	}
	if removed := lasting.Removed(); !slices.Equal(removed, []string{"4"}) {
		t.Errorf("of lasting attempts, %v are removed", removed)
	}
	if err := b.State.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(b.State.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}

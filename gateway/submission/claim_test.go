package submission

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/activities/store/storetest"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
)

// fakeRuns are the ids of the runs that the server knows.
type fakeRuns map[string]bool

func (r fakeRuns) Describe(_ context.Context, id string) (*runview.Description, error) {
	if !r[id] {
		return nil, rpcerror.NotFound("no run %s", id)
	}
	return &runview.Description{}, nil
}

// TestKeyIsClaimedAnewOnceItsRunIsGone claims a key for one run after another.
func TestKeyIsClaimedAnewOnceItsRunIsGone(t *testing.T) {
	t.Parallel()
	kept := storetest.Open(t, "mem://")
	at, runs := time.Now(), fakeRuns{"a-1": true}
	c := claims{store: kept, runs: runs, now: func() time.Time { return at }, log: slog.New(slog.DiscardHandler)}
	claim := func(what, id string, code connect.Code) {
		t.Helper()
		if err := c.claim(t.Context(), "k", "ann", id); (err == nil) != (code == 0) || err != nil && connect.CodeOf(err) != code {
			t.Errorf("%s: %v", what, err)
		}
	}
	claim("a new key", "a-1", 0)
	claim("the same request", "a-1", 0)
	claim("the key of another run", "b-1", connect.CodeAlreadyExists)
	delete(runs, "a-1")
	claim("the key of a run that may still start", "b-1", connect.CodeAlreadyExists)
	at = at.Add(2 * claimSettled)
	claim("the key of a run that is gone", "b-1", 0)
	claim("the key of the run that follows", "a-1", connect.CodeAlreadyExists)
}

// TestStoreOutageLetsARequestPass claims a key in a store that is closed.
func TestStoreOutageLetsARequestPass(t *testing.T) {
	t.Parallel()
	kept, err := store.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	c := claims{store: kept, runs: fakeRuns{}, now: time.Now, log: slog.New(slog.NewTextHandler(&logged, nil))}
	if err := c.claim(t.Context(), "k", "ann", "a-1"); err != nil || !strings.Contains(logged.String(), "cannot claim") {
		t.Errorf("a claim without a store: %v, %q", err, logged.String())
	}
}

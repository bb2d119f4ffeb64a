package runretry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
)

// fakeStore is a store that is down or up.
type fakeStore struct{ down bool }

func (s *fakeStore) probe(context.Context) error {
	if s.down {
		return errors.New("down")
	}
	return nil
}

func TestStoreOutageIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{}
		wait := storeWait{s.probe}
		broken, calls := errors.New("broken"), 0
		call := func(context.Context) error { calls++; return broken }
		if err := wait.await(t.Context(), "do it", call); !errors.Is(err, broken) || calls != 2 {
			t.Errorf("a store that answers: %v after %d calls", err, calls)
		}
		brief, over := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer over()
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		if err := wait.await(brief, "do it", hangs); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("a store that comes back too late: %v", err)
		}
		s.down = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := wait.await(ctx, "do it", call)
		if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "do it: the store did not answer within") || !strings.Contains(err.Error(), "try again when it does") {
			t.Errorf("a store that stays away: %v", err)
		}
	})
}

func TestLateStoreRecoveryIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{down: true}
		calls := 0
		call := func(context.Context) error {
			if calls++; calls == 2 {
				s.down = false
			}
			return errors.New("read an object: 500")
		}
		ctx, cancel := context.WithTimeout(t.Context(), storePause+storePause/2)
		defer cancel()
		err := storeWait{s.probe}.await(ctx, "do it", call)
		if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "the store did not answer within") {
			t.Errorf("a store that comes back in the last pause: %v", err)
		}
	})
}

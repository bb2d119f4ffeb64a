package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(Size{Cores: 4})
		l, other := NewLedger(m, 1), NewLedger(m, 4)
		s := &starts{releases: map[string]func(){}}
		s.acquire(t.Context(), l, "1", Need{Cores: 1})
		refused := make(chan error, 1)
		go func() {
			_, err := l.Acquire(t.Context(), "2", Need{Cores: 3})
			refused <- err
		}()
		synctest.Wait()

		idle := make(chan error, 1)
		go func() { idle <- l.Idle(t.Context()) }()
		cause := errors.New("told to")
		l.Drain(cause)
		for range 2 { // the waiting call, and a later one
			if err := <-refused; !errors.Is(err, ErrDraining) || !errors.Is(err, cause) {
				t.Errorf("got %v", err)
			}
			_, err := l.Acquire(t.Context(), "2", Need{Cores: 1})
			refused <- err
		}
		if s.acquire(t.Context(), other, "3", Need{Cores: 3}); len(s.order) != 2 {
			t.Error("another node waits for what the drained one asked for")
		}
		synctest.Wait()
		select {
		case err := <-idle:
			t.Errorf("idle (%v) although 1 runs", err)
		default:
		}
		if s.release("1"); <-idle != nil {
			t.Error("not idle although nothing runs")
		}
		if err := l.Idle(t.Context()); err != nil {
			t.Error(err)
		}

		l.Undrain()
		if s.acquire(t.Context(), l, "2", Need{Cores: 1}); len(s.order) != 3 {
			t.Error("nothing is let in after Undrain")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if err := l.Idle(ctx); !errors.Is(err, cause) {
			t.Errorf("got %v, want the cause", err)
		}
		s.release("2")
		s.release("3")
	})
}

// TestDrainMakesWay checks that a refused waiter makes way for those behind it.
func TestDrainMakesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(Size{Cores: 4})
		l, other := NewLedger(m, 4), NewLedger(m, 4)
		s := &starts{releases: map[string]func(){}}
		s.acquire(t.Context(), l, "1", Need{Cores: 1})
		s.acquire(t.Context(), l, "2", Need{Cores: 4})
		if s.acquire(t.Context(), other, "3", Need{Cores: 1}); len(s.order) != 1 {
			t.Errorf("started %v", s.order)
		}
		l.Drain(nil)
		if synctest.Wait(); len(s.order) != 2 {
			t.Errorf("started %v, want 3 too", s.order)
		}
	})
}

package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// starts acquires in the background, and records each id once it has succeeded.
type starts struct {
	mu       sync.Mutex
	order    []string
	releases map[string]func()
}

func (s *starts) acquire(ctx context.Context, l *Ledger, id string, need Need) {
	go func() {
		release, err := l.Acquire(ctx, id, need)
		if err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.order = append(s.order, id)
		s.releases[id] = release
	}()
	synctest.Wait()
}

func (s *starts) release(id string) {
	s.releases[id]()
	synctest.Wait()
}

func TestLedgerServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(Need{Cores: 4, MemoryMB: 1000})
		a, b := NewLedger(m, 2), NewLedger(m, 2)
		s := &starts{releases: map[string]func(){}}
		ctx := t.Context()
		want := func(order ...string) {
			t.Helper()
			if !slices.Equal(s.order, order) {
				t.Fatalf("started %v, want %v", s.order, order)
			}
		}
		s.acquire(ctx, a, "1", Need{Cores: 2})
		s.acquire(ctx, b, "big", Need{Cores: 4})
		s.acquire(ctx, a, "small", Need{Cores: 1})
		want("1") // small fits, but must not overtake
		s.release("1")
		want("1", "big")
		s.release("big")
		want("1", "big", "small")
		s.acquire(ctx, a, "2", Need{})
		s.acquire(ctx, a, "no slot", Need{})
		s.acquire(ctx, b, "other node", Need{Cores: 1})
		want("1", "big", "small", "2", "other node")
		s.release("2")
		want("1", "big", "small", "2", "other node", "no slot")
		if got := m.Reserved(); got != (Need{Cores: 2}) {
			t.Errorf("the machine has reserved %v", got)
		}
		if got := a.Reserved(); got != (Need{Cores: 1}) {
			t.Errorf("node a has reserved %v", got)
		}
		if got := a.Running(); len(got) != 2 || got[0].ID != "small" || got[1].ID != "no slot" {
			t.Errorf("on node a run %v", got)
		}
		for _, id := range []string{"small", "no slot", "other node", "other node"} {
			s.release(id)
		}
		if got := m.Reserved(); got != (Need{}) {
			t.Errorf("all is released, and %v is reserved", got)
		}
	})
}

func TestCancelledWaiterMakesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(NewMachine(Need{Cores: 2}), 4)
		s := &starts{releases: map[string]func(){}}
		ctx, cancel := context.WithCancel(t.Context())
		s.acquire(t.Context(), l, "1", Need{Cores: 1})
		s.acquire(ctx, l, "2", Need{Cores: 2})
		s.acquire(t.Context(), l, "3", Need{Cores: 1})
		cancel()
		synctest.Wait()
		if want := []string{"1", "3"}; !slices.Equal(s.order, want) {
			t.Errorf("started %v, want %v", s.order, want)
		}
		if got := l.Machine().Reserved(); got != (Need{Cores: 2}) {
			t.Errorf("reserved %v, want what 1 and 3 hold", got)
		}
		if got := l.Running(); len(got) != 2 || got[0].ID != "1" || got[1].ID != "3" {
			t.Errorf("running %v, want 1 and 3", got)
		}
		// The id of the one that has gone may come again.
		s.release("1")
		s.release("3")
		s.acquire(t.Context(), l, "2", Need{Cores: 2})
		if len(s.order) != 3 {
			t.Errorf("started %v", s.order)
		}
	})
}

func TestLedgerRefuses(t *testing.T) {
	l := NewLedger(NewMachine(Need{Cores: 2, MemoryMB: 100, GPUs: 1}), 2)
	release, err := l.Acquire(t.Context(), "1", Need{Cores: 2, MemoryMB: 100, GPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, need := range []Need{{Cores: -1}, {MemoryMB: math.NaN()}, {GPUs: -1}} {
		if _, err := l.Acquire(t.Context(), "2", need); err == nil || errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: got %v", need, err)
		}
	}
	for _, need := range []Need{{Cores: 2.001}, {MemoryMB: 101}, {GPUs: 2}, {Cores: 1e300}} {
		if _, err := l.Acquire(t.Context(), "2", need); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: got %v, want %v", need, err, ErrTooLarge)
		}
	}
	if _, err := l.Acquire(t.Context(), "1", Need{}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("got %v, want %v", err, ErrDuplicate)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := l.Acquire(ctx, "2", Need{}); !errors.Is(err, gone) {
		t.Errorf("got %v, want the cause of the end", err)
	}
}

func TestFractionsAddUp(t *testing.T) {
	l := NewLedger(NewMachine(Need{Cores: 11}), 20)
	for i := range 10 {
		release, err := l.Acquire(t.Context(), fmt.Sprint(i), Need{Cores: 1.1})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	if got := l.Reserved(); got != (Need{Cores: 11}) {
		t.Errorf("reserved %v, want all 11 cores", got)
	}
}

// Whatever is acquired, released and cancelled at the same time, no machine and
// no node is ever over its limits, everything that can start does start, and in
// the end nothing is held.
func TestLedgerNeverOversubscribes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := Need{Cores: 4, MemoryMB: 1000, GPUs: 2}
		m := NewMachine(total)
		ledgers := []*Ledger{NewLedger(m, 2), NewLedger(m, 3)}
		type job struct {
			ledger int
			need   Need
			cancel bool
		}
		jobs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job {
			return job{
				ledger: rapid.IntRange(0, 1).Draw(t, "ledger"),
				need: Need{
					Cores:    float64(rapid.IntRange(0, 40).Draw(t, "cores")) / 10,
					MemoryMB: float64(rapid.IntRange(0, 10).Draw(t, "memory") * 100),
					GPUs:     rapid.IntRange(0, 2).Draw(t, "gpus"),
				},
				cancel: rapid.Bool().Draw(t, "cancel"),
			}
		}), 1, 40).Draw(t, "jobs")
		var mu sync.Mutex
		held, slots := Need{}, [2]int{}
		change := func(j job, sign float64) {
			mu.Lock()
			defer mu.Unlock()
			held.Cores += sign * j.need.Cores
			held.MemoryMB += sign * j.need.MemoryMB
			held.GPUs += int(sign) * j.need.GPUs
			slots[j.ledger] += int(sign)
			if held.Cores > total.Cores+1e-9 || held.MemoryMB > total.MemoryMB || held.GPUs > total.GPUs || slots[0] > 2 || slots[1] > 3 {
				t.Errorf("over the limit: %v, slots %v", held, slots)
			}
		}
		// Holding the whole machine at first gives the jobs a line to wait in.
		unblock, err := ledgers[0].Acquire(context.Background(), "blocker", total)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i, j := range jobs {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if j.cancel {
					go cancel()
				}
				release, err := ledgers[j.ledger].Acquire(ctx, fmt.Sprint(i), j.need)
				if err != nil {
					if !j.cancel {
						t.Errorf("job %d: %v", i, err)
					}
					return
				}
				change(j, 1)
				runtime.Gosched()
				change(j, -1)
				release()
				release()
			})
		}
		runtime.Gosched()
		unblock()
		all.Wait()
		if m.Reserved() != (Need{}) || len(m.line) > 0 {
			t.Errorf("left over: %v reserved, %d waiting", m.Reserved(), len(m.line))
		}
		for _, l := range ledgers {
			if len(l.Running()) > 0 || len(l.ids) > 0 {
				t.Errorf("left over: %v running, %d ids", l.Running(), len(l.ids))
			}
		}
	})
}

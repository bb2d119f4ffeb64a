package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"

	v1 "switchyard/proto/switchyard/v1"
)

func same(a, b Need) bool { return cmp.Equal(a, b, cmpopts.EquateEmpty(), protocmp.Transform()) }

// starts calls Acquire in the background, and records each id when its call succeeds.
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
		m := NewMachine(Size{Cores: 4, MemoryMB: 1000})
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
		want("1") // small fits, but must not overtake big
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
		if got := m.Reserved(); !same(got, Need{Cores: 2}) {
			t.Errorf("the machine has reserved %v", got)
		}
		if got := a.Reserved(); !same(got, Need{Cores: 1}) {
			t.Errorf("node a has reserved %v", got)
		}
		if got := a.Running(); len(got) != 2 || got[0].ID != "small" || got[1].ID != "no slot" {
			t.Errorf("on node a run %v", got)
		}
		for _, id := range []string{"small", "no slot", "other node", "other node"} {
			s.release(id)
		}
		if got := m.Reserved(); !same(got, Need{}) {
			t.Errorf("all is released, and %v is reserved", got)
		}
	})
}

func TestCancelledWaiterMakesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(NewMachine(Size{Cores: 2}), 4)
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
		if got := l.Machine().Reserved(); !same(got, Need{Cores: 2}) {
			t.Errorf("reserved %v, want what 1 and 3 hold", got)
		}
		if got := l.Running(); len(got) != 2 || got[0].ID != "1" || got[1].ID != "3" {
			t.Errorf("running %v, want 1 and 3", got)
		}
		// An id that has left may be used again.
		s.release("1")
		s.release("3")
		s.acquire(t.Context(), l, "2", Need{Cores: 2})
		if len(s.order) != 3 {
			t.Errorf("started %v", s.order)
		}
	})
}

func TestLedgerRefuses(t *testing.T) {
	l := NewLedger(NewMachine(Size{Cores: 2, MemoryMB: 100, GPUs: []GPU{{Index: 1, MemoryMB: 8000}}, NUMA: []NUMASize{{Index: 0, Cores: 2}, {Index: 2, MemoryMB: 100}}}), 2)
	release, err := l.Acquire(t.Context(), "1", Need{Cores: 2, MemoryMB: 100, GPUs: []int32{1}})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, need := range []Need{{Cores: -1}, {MemoryMB: math.NaN()}, {GPUs: []int32{1, 1}}, {GPUPart: &v1.GpuPart{}}, {GPUs: []int32{0, 1}, GPUPart: &v1.GpuPart{Thousandths: 500}},
		{GPUs: []int32{1}, GPUPart: &v1.GpuPart{MemoryMb: -1}}} {
		if _, err := l.Acquire(t.Context(), "2", need); err == nil || errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: got %v", need, err)
		}
	}
	zero, one, two := int32(0), int32(1), int32(2)
	for _, need := range []Need{
		{Cores: 2.001}, {MemoryMB: 101}, {GPUs: []int32{0}}, {GPUs: []int32{-1}}, {Cores: 1e300},
		{NUMA: &one}, {NUMA: &zero, MemoryMB: 1}, {NUMA: &two, Cores: 0.1},
		{GPUs: []int32{1}, GPUPart: &v1.GpuPart{MemoryMb: 8001}}, {GPUs: []int32{1}, GPUPart: &v1.GpuPart{Thousandths: 1001}},
	} {
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
	l := NewLedger(NewMachine(Size{Cores: 11}), 20)
	for i := range 10 {
		release, err := l.Acquire(t.Context(), fmt.Sprint(i), Need{Cores: 1.1})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	if got := l.Reserved(); !same(got, Need{Cores: 11}) {
		t.Errorf("reserved %v, want all 11 cores", got)
	}
}

// TestMachineWithoutNUMA checks that a machine without NUMA nodes has only NUMA node 0.
func TestMachineWithoutNUMA(t *testing.T) {
	l := NewLedger(NewMachine(Size{Cores: 2}), 2)
	zero, one := int32(0), int32(1)
	release, err := l.Acquire(t.Context(), "1", Need{Cores: 2, NUMA: &zero})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Running(); len(got) != 1 || !same(got[0].Need, Need{Cores: 2, NUMA: &zero}) {
		t.Errorf("running %v", got)
	}
	release()
	if _, err := l.Acquire(t.Context(), "2", Need{NUMA: &one}); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "no NUMA node 1") {
		t.Errorf("got %v", err)
	}
}

// TestPartsOfAGPUAddUp checks that parts of a GPU start until they are a whole one or have all its memory, and that they share it
// with nothing else.
func TestPartsOfAGPUAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(Size{Cores: 8, GPUs: []GPU{{Index: 0, MemoryMB: 8000}}})
		l, other := NewLedger(m, 20), NewLedger(m, 20)
		s := &starts{releases: map[string]func(){}}
		part := func(thousandths, memoryMB int32) Need {
			return Need{GPUs: []int32{0}, GPUPart: &v1.GpuPart{Thousandths: thousandths, MemoryMb: memoryMB}}
		}
		want := func(order ...string) {
			t.Helper()
			if !slices.Equal(s.order, order) {
				t.Fatalf("started %v, want %v", s.order, order)
			}
		}
		s.acquire(t.Context(), l, "a", part(333, 0))
		s.acquire(t.Context(), other, "b", part(333, 3000))
		s.acquire(t.Context(), l, "c", part(334, 0))
		s.acquire(t.Context(), other, "most memory", part(0, 5000))
		s.acquire(t.Context(), l, "share", part(1, 0))
		s.acquire(t.Context(), other, "memory", part(0, 1))
		s.acquire(t.Context(), l, "whole", Need{GPUs: []int32{0}})
		want("a", "b", "c", "most memory")
		s.release("most memory")
		want("a", "b", "c", "most memory", "memory")
		s.release("a")
		want("a", "b", "c", "most memory", "memory", "share")
		s.acquire(t.Context(), other, "late", part(1, 0))
		for _, id := range []string{"b", "c", "memory"} {
			s.release(id)
		}
		want("a", "b", "c", "most memory", "memory", "share")
		s.release("share")
		want("a", "b", "c", "most memory", "memory", "share", "whole")
		s.release("whole")
		want("a", "b", "c", "most memory", "memory", "share", "whole", "late")
		if got, held := m.Reserved(), (Need{GPUs: []int32{0}}); !same(got, held) {
			t.Errorf("reserved %v, want %v", got, held)
		}
		s.release("late")
		if !same(m.Reserved(), Need{}) {
			t.Errorf("%v reserved at the end", m.Reserved())
		}
	})
}

// TestWaiterKeepsOnlyWhatItNeeds checks that only what a waiter needs is set aside for it, and that
// others get everything else.
func TestWaiterKeepsOnlyWhatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(Size{Cores: 8, MemoryMB: 800, GPUs: []GPU{{Index: 0, MemoryMB: 8000}, {Index: 1}}, NUMA: []NUMASize{
			{Index: 0, Cores: 4, MemoryMB: 400}, {Index: 1, Cores: 4, MemoryMB: 400},
		}})
		l := NewLedger(m, 20)
		s := &starts{releases: map[string]func(){}}
		zero, one := int32(0), int32(1)
		for _, step := range []struct {
			id      string
			need    Need
			started bool
		}{
			{"holds gpu 0", Need{Cores: 1, GPUs: []int32{0}}, true},
			{"waits for gpu 0", Need{Cores: 2, GPUs: []int32{0}}, false},
			{"waits for it too", Need{GPUs: []int32{0}}, false},
			{"another gpu", Need{Cores: 1, GPUs: []int32{1}}, true},
			{"a half node", Need{Cores: 3, NUMA: &zero}, true},
			{"more of that node", Need{Cores: 1.5, NUMA: &zero}, false},
			{"what is spoken for", Need{Cores: 1, MemoryMB: 100}, false},
			{"no cores", Need{MemoryMB: 300, NUMA: &one}, true},
			{"memory of that node", Need{MemoryMB: 101, NUMA: &one}, false},
			{"memory of any", Need{MemoryMB: 100}, true},
		} {
			if s.acquire(t.Context(), l, step.id, step.need); slices.Contains(s.order, step.id) != step.started {
				t.Errorf("%s: started %v, want %v", step.id, !step.started, step.started)
			}
		}
		s.release("holds gpu 0")
		if last := s.order[len(s.order)-1]; last != "waits for gpu 0" {
			t.Errorf("last started %s", last)
		}
		for len(s.releases) > 0 {
			for id := range s.releases {
				s.release(id)
				delete(s.releases, id)
			}
		}
		if len(s.order) != 10 || !same(m.Reserved(), Need{}) {
			t.Errorf("started %v, %v reserved", s.order, m.Reserved())
		}
	})
}

func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(Size{Cores: 1, GPUs: []GPU{{}}})
		l := NewLedger(m, 4)
		s := &starts{releases: map[string]func(){}}
		s.acquire(t.Context(), l, "1", Need{Cores: 1, GPUs: []int32{0}})
		s.acquire(t.Context(), l, "2", Need{Cores: 1})
		m.Resize(Size{Cores: 2, GPUs: []GPU{{}}})
		if synctest.Wait(); len(s.order) != 2 {
			t.Errorf("started %v although there are cores now", s.order)
		}
		refused := make(chan error)
		go func() {
			_, err := l.Acquire(t.Context(), "3", Need{GPUs: []int32{0}})
			refused <- err
		}()
		synctest.Wait()
		m.Resize(Size{Cores: 1})
		if err := <-refused; !errors.Is(err, ErrTooLarge) {
			t.Errorf("waits for a GPU that is gone: %v", err)
		}
		if got := m.Reserved(); !same(got, Need{Cores: 2, GPUs: []int32{0}}) {
			t.Errorf("holds %v, want what it held before", got)
		}
		s.release("1")
		s.release("2")
		if got := m.Reserved(); !same(got, Need{}) || !m.Total().equal(Size{Cores: 1}) {
			t.Errorf("%v reserved of %v", got, m.Total())
		}
	})
}

// TestLedgerRestore checks that a restored attempt gets its place even beyond the size of the
// machine, and that others wait for it as for any other attempt.
func TestLedgerRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(Size{Cores: 2, MemoryMB: 100, GPUs: []GPU{{}, {Index: 1}}})
		l := NewLedger(m, 2)
		big := Need{Cores: 3, MemoryMB: 200, GPUs: []int32{1}}
		release, err := l.Restore("old", big)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Restore("old", Need{}); !errors.Is(err, ErrDuplicate) {
			t.Errorf("a second one: %v", err)
		}
		if got := l.Running(); len(got) != 1 || got[0].ID != "old" || !same(got[0].Need, big) || !same(m.Reserved(), big) {
			t.Errorf("on the ledger: %v", got)
		}
		s := &starts{releases: map[string]func(){}}
		s.acquire(t.Context(), l, "core", Need{Cores: 1})
		s.acquire(t.Context(), l, "gpu", Need{GPUs: []int32{1}})
		if len(s.order) != 0 {
			t.Errorf("%v have started", s.order)
		}
		release()
		release()
		synctest.Wait()
		if len(s.order) != 2 {
			t.Errorf("%v have started", s.order)
		}
		for _, id := range slices.Clone(s.order) {
			s.release(id)
		}
		if err := leftover(m, l); err != nil {
			t.Error(err)
		}
	})
}

// TestRemoteAttemptsTakeNoSlot checks that a remote attempt takes no slot and no resources, even
// while others wait.
func TestRemoteAttemptsTakeNoSlot(t *testing.T) {
	t.Parallel()
	l := NewLedger(NewMachine(Size{Cores: 1, MemoryMB: 1}), 1)
	local, err := l.Acquire(t.Context(), "local", Need{Cores: 1})
	if err != nil {
		t.Fatal(err)
	}
	var releases []func()
	for _, id := range []string{"x", "y"} {
		release, err := l.Acquire(t.Context(), id, Need{Remote: true})
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	if got := l.Running(); len(got) != 3 || !got[1].Need.Remote || got[0].Need.Remote {
		t.Errorf("on the ledger are %v", got)
	}
	local()
	again, err := l.Acquire(t.Context(), "again", Need{Cores: 1})
	if err != nil {
		t.Fatal(err)
	}
	again()
	for _, release := range releases {
		release()
	}
	if got := l.Running(); len(got) != 0 {
		t.Errorf("on the ledger are still %v", got)
	}
}

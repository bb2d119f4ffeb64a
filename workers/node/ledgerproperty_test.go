package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// oddMachine has a NUMA node without memory, one without processors, a gap in the GPU indices, and a GPU of unknown memory.
var oddMachine = Size{Cores: 8, MemoryMB: 1000, GPUs: []GPU{{Index: 0, MemoryMB: 8000}, {Index: 1}, {Index: 4, MemoryMB: 6000}}, NUMA: []NUMASize{
	{Index: 0, Cores: 4, MemoryMB: 500}, {Index: 1, Cores: 4}, {Index: 3, MemoryMB: 500},
}}

// randomNeed returns a need that oddMachine can meet.
func randomNeed(r *rand.Rand) Need {
	n := Need{Cores: float64(r.IntN(41)) / 10, MemoryMB: float64(r.IntN(6) * 100)}
	if r.IntN(2) == 0 {
		gpu := oddMachine.GPUs[r.IntN(3)]
		n.GPUs = []int32{gpu.Index}
		n.GPUPart = &v1.GpuPart{Thousandths: []int32{1, 333, 500, 999}[r.IntN(4)], MemoryMb: min([]int32{0, 1000, 3000, 6000}[r.IntN(4)], int32(gpu.MemoryMB))}
		if n.GPUPart.MemoryMb > 0 && r.IntN(3) == 0 {
			n.GPUPart.Thousandths = 0
		}
	} else {
		for _, gpu := range oddMachine.GPUs {
			if r.IntN(4) == 0 {
				n.GPUs = append(n.GPUs, gpu.Index)
			}
		}
	}
	if r.IntN(2) == 0 {
		numa := oddMachine.NUMA[r.IntN(3)]
		n.NUMA = &numa.Index
		n.Cores, n.MemoryMB = min(n.Cores, numa.Cores), min(n.MemoryMB, numa.MemoryMB)
	}
	return n
}

// tally adds up needs in the plain way, to check the ledger's own accounts.
type tally struct {
	cores, memory float64
	gpus          map[int32]*gpuTally
	numa          map[int32][2]float64
	slots         map[*Ledger]int
}

// gpuTally counts the attempts on a GPU, those that hold all of it, and the sums of the parts.
type gpuTally struct{ attempts, whole, share, memory int }

func newTally() *tally {
	return &tally{gpus: map[int32]*gpuTally{}, numa: map[int32][2]float64{}, slots: map[*Ledger]int{}}
}

func (y *tally) change(l *Ledger, n Need, sign int) {
	y.cores += float64(sign) * n.Cores
	y.memory += float64(sign) * n.MemoryMB
	y.slots[l] += sign
	for _, gpu := range n.GPUs {
		if y.gpus[gpu] == nil {
			y.gpus[gpu] = &gpuTally{}
		}
		g := y.gpus[gpu]
		if g.attempts += sign; n.GPUPart == nil {
			g.whole += sign
		}
		g.share += sign * int(n.GPUPart.GetThousandths())
		g.memory += sign * int(n.GPUPart.GetMemoryMb())
	}
	if n.NUMA != nil {
		sum := y.numa[*n.NUMA]
		y.numa[*n.NUMA] = [2]float64{sum[0] + float64(sign)*n.Cores, sum[1] + float64(sign)*n.MemoryMB}
	}
}

// over returns an error if the tally exceeds the size.
func (y *tally) over(size Size) error {
	const slack = 1e-9
	if y.cores > size.Cores+slack || y.memory > size.MemoryMB {
		return fmt.Errorf("%g cores and %g MiB of %v", y.cores, y.memory, size)
	}
	for gpu, g := range y.gpus {
		at := slices.IndexFunc(size.GPUs, func(of GPU) bool { return of.Index == gpu })
		if g.attempts > 0 && at < 0 || g.whole > 0 && g.attempts > 1 || g.share > 1000 || g.memory > 0 && g.memory > int(size.GPUs[at].MemoryMB) {
			return fmt.Errorf("GPU %d has %+v", gpu, *g)
		}
	}
	for _, numa := range size.NUMA {
		if sum := y.numa[numa.Index]; sum[0] > numa.Cores+slack || sum[1] > numa.MemoryMB {
			return fmt.Errorf("NUMA node %d: %v of %v", numa.Index, sum, numa)
		}
	}
	for l, n := range y.slots {
		if n > l.slots {
			return fmt.Errorf("%d attempts in %d slots", n, l.slots)
		}
	}
	return nil
}

// blocks reports whether n asks for something that the size no longer has room for.
func (y *tally) blocks(n Need, size Size) bool {
	const slack = 1e-9
	none := func(asked, taken, all float64) bool { return asked > 0 && taken+asked > all+slack }
	if none(n.Cores, y.cores, size.Cores) || none(n.MemoryMB, y.memory, size.MemoryMB) {
		return true
	}
	for _, of := range size.GPUs {
		g, part := y.gpus[of.Index], n.GPUPart
		if g == nil || g.attempts == 0 || !slices.Contains(n.GPUs, of.Index) {
			continue
		}
		if part == nil || g.whole > 0 || g.share+int(part.GetThousandths()) > 1000 ||
			part.GetMemoryMb() > 0 && g.memory+int(part.GetMemoryMb()) > int(of.MemoryMB) {
			return true
		}
	}
	return n.NUMA != nil && slices.ContainsFunc(size.NUMA, func(s NUMASize) bool {
		sum := y.numa[s.Index]
		return s.Index == *n.NUMA && (none(n.Cores, sum[0], s.Cores) || none(n.MemoryMB, sum[1], s.MemoryMB))
	})
}

// leftover returns an error if an idle machine still has something on its books.
func leftover(m *Machine, ledgers ...*Ledger) error {
	if !same(m.Reserved(), Need{}) || len(m.line) > 0 {
		return fmt.Errorf("left over: %v reserved, %d waiting", m.Reserved(), len(m.line))
	}
	for index, sum := range m.reserved.numa {
		if sum != (amount{}) {
			return fmt.Errorf("left over on NUMA node %d: %v", index, sum)
		}
	}
	for _, l := range ledgers {
		if len(l.Running()) > 0 || len(l.ids) > 0 {
			return fmt.Errorf("left over: %v running, %d ids", l.Running(), len(l.ids))
		}
	}
	return nil
}

func TestLedgerProperty(t *testing.T) { ledgerProperty(t, 40) }

// TestLongLedgerProperty checks 100,000 sequences.
func TestLongLedgerProperty(t *testing.T) {
	testneeds.Long(t)
	ledgerProperty(t, 1000)
}

// ledgerProperty plays, for each of rapid's 100 seeds, random sequences of acquiring, releasing,
// giving up and draining in a given order. It checks that the machine is never oversubscribed in
// any way, that every waiter that can start has started, and that nothing is held at the end.
func ledgerProperty(t *testing.T, sequences int) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range sequences {
			if err := randomSequence(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func randomSequence(r *rand.Rand) error {
	m := NewMachine(oddMachine)
	ledgers := []*Ledger{NewLedger(m, 2), NewLedger(m, 4)}
	var on []*waiter // granted or waiting
	steps := 5 + r.IntN(20)
	for i := 0; i < steps || len(on) > 0; i++ {
		switch action := r.IntN(10); {
		case i < steps && action < 5:
			u, err := randomNeed(r).units()
			if err != nil {
				return err
			}
			l := ledgers[r.IntN(2)]
			w := &waiter{ledger: l, held: &entry{id: fmt.Sprint(i), units: u}, ready: make(chan struct{})}
			if err := l.enter(w); err == nil {
				on = append(on, w)
			} else if l.closed == nil || !errors.Is(err, ErrDraining) {
				return err
			}
		case action == 5:
			ledgers[0].Drain(nil)
		case action == 6:
			ledgers[0].Undrain()
		case len(on) > 0:
			w := on[r.IntN(len(on))]
			w.ledger.leave(w)
			on = slices.DeleteFunc(on, func(o *waiter) bool { return o == w })
		}
		on = slices.DeleteFunc(on, func(w *waiter) bool { return w.refusal != nil })
		if err := consistent(m, on); err != nil {
			return err
		}
	}
	return leftover(m, ledgers...)
}

// consistent checks the machine's books against the waiters in on.
func consistent(m *Machine, on []*waiter) error {
	held, spoken := newTally(), newTally()
	for _, w := range on {
		if w.granted {
			held.change(w.ledger, w.held.units.need(), 1)
			spoken.change(w.ledger, w.held.units.need(), 1)
		}
	}
	if err := held.over(m.size); err != nil {
		return err
	}
	if got := m.Reserved(); got.Cores > held.cores+1e-9 || got.Cores < held.cores-1e-9 || got.MemoryMB != held.memory {
		return fmt.Errorf("the books say %v, held are %g cores and %g MiB", got, held.cores, held.memory)
	}
	// Every waiter lacks a slot, or something that is held or set aside for earlier waiters.
	for _, w := range m.line {
		n := w.held.units.need()
		if spoken.slots[w.ledger] >= w.ledger.slots {
			continue
		}
		if !spoken.blocks(n, m.size) {
			return fmt.Errorf("%v waits for nothing", n)
		}
		spoken.change(w.ledger, n, 1)
	}
	return nil
}

// TestLedgerRaces checks the same properties with concurrent calls.
func TestLedgerRaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m := NewMachine(oddMachine)
		ledgers := []*Ledger{NewLedger(m, 2), NewLedger(m, 4)}
		var mu sync.Mutex
		held := newTally()
		change := func(l *Ledger, n Need, sign int) {
			mu.Lock()
			defer mu.Unlock()
			held.change(l, n, sign)
			if err := held.over(m.size); err != nil {
				t.Error(err)
			}
		}
		// Hold the whole machine at first, so that the other calls have to queue.
		unblock, err := ledgers[0].Acquire(context.Background(), "blocker", Need{Cores: 8, MemoryMB: 1000, GPUs: []int32{0, 1, 4}})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 1 + r.IntN(40) {
			l, need, cancels := ledgers[r.IntN(2)], randomNeed(r), r.IntN(2) == 0
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if cancels {
					go cancel()
				}
				release, err := l.Acquire(ctx, fmt.Sprint(i), need)
				if err != nil {
					if !cancels && !errors.Is(err, ErrDraining) {
						t.Errorf("attempt %d: %v", i, err)
					}
					return
				}
				change(l, need, 1)
				runtime.Gosched()
				change(l, need, -1)
				release()
				release()
			})
		}
		all.Go(func() {
			ledgers[1].Drain(nil)
			if err := ledgers[1].Idle(context.Background()); err != nil {
				t.Error(err)
			}
			ledgers[1].Undrain()
		})
		runtime.Gosched()
		unblock()
		all.Wait()
		if err := leftover(m, ledgers...); err != nil {
			t.Error(err)
		}
	})
}

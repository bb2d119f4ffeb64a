package node

import (
	"fmt"
	"math"
	"sync"
)

// Need is what an attempt takes of a machine while it runs.
type Need struct {
	// Cores are CPU cores; fractions are counted in thousandths, rounded up.
	Cores float64
	// MemoryMB is memory in MiB, rounded up to whole ones.
	MemoryMB float64
	// GPUs is a number of GPUs.
	GPUs int
}

// Machine is what the local nodes of one process share: the totals of the
// machine, what is reserved of them, and the line of those that wait. Its
// methods may be called from several goroutines at once.
type Machine struct {
	total units

	mu       sync.Mutex
	reserved units
	line     []*waiter // in order of arrival
}

// NewMachine returns a machine of that size, of which nothing is reserved.
func NewMachine(total Need) *Machine {
	return &Machine{total: total.floor()}
}

// Total returns the size of the machine.
func (m *Machine) Total() Need { return m.total.need() }

// Reserved returns what the attempts of all its nodes hold.
func (m *Machine) Reserved() Need {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserved.need()
}

// grant starts whoever can start, in order of arrival. A waiter whose node has
// no free slot is passed over, since it takes nothing from the others; one that
// waits for cores, memory or GPUs holds up all behind it, or small needs would
// keep a big one waiting for ever. m.mu is held.
func (m *Machine) grant() {
	rest := m.line[:0]
	blocked := false
	for _, w := range m.line {
		if blocked || !w.ledger.slotFree() {
			rest = append(rest, w)
			continue
		}
		if !m.reserved.plus(w.held.units).within(m.total) {
			blocked = true
			rest = append(rest, w)
			continue
		}
		m.reserved = m.reserved.plus(w.held.units)
		w.ledger.running = append(w.ledger.running, w.held)
		w.granted = true
		close(w.ready)
	}
	clear(m.line[len(rest):])
	m.line = rest
}

// units are the amounts of a Need as whole numbers, whose sums are exact.
type units struct {
	milliCores, memoryMB, gpus int64
}

func (n Need) units() (units, error) {
	// Written so that NaN is refused too.
	if !(n.Cores >= 0 && n.MemoryMB >= 0 && n.GPUs >= 0) {
		return units{}, fmt.Errorf("a need of %s makes no sense", n)
	}
	// Decimal fractions are not exact: 1.1 cores must not become 1101 thousandths.
	const slack = 1e-6
	return units{
		milliCores: whole(math.Ceil(n.Cores*1000 - slack)),
		memoryMB:   whole(math.Ceil(n.MemoryMB - slack)),
		gpus:       int64(n.GPUs),
	}, nil
}

func (n Need) floor() units {
	return units{
		milliCores: whole(math.Floor(max(n.Cores, 0) * 1000)),
		memoryMB:   whole(math.Floor(max(n.MemoryMB, 0))),
		gpus:       int64(max(n.GPUs, 0)),
	}
}

// whole converts to an integer that is small enough to be added up.
func whole(x float64) int64 { return int64(min(x, 1<<50)) }

func (u units) need() Need {
	return Need{Cores: float64(u.milliCores) / 1000, MemoryMB: float64(u.memoryMB), GPUs: int(u.gpus)}
}

func (u units) plus(v units) units {
	return units{u.milliCores + v.milliCores, u.memoryMB + v.memoryMB, u.gpus + v.gpus}
}

func (u units) minus(v units) units {
	return units{u.milliCores - v.milliCores, u.memoryMB - v.memoryMB, u.gpus - v.gpus}
}

func (u units) within(v units) bool {
	return u.milliCores <= v.milliCores && u.memoryMB <= v.memoryMB && u.gpus <= v.gpus
}

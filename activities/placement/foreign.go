package placement

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// countForeign finds the attempts that run on a machine without having been placed by this queue.
// After a restart, these are all attempts that the previous queue had placed.
func (l *ledger) countForeign(m *machine, now time.Time) {
	var known, reported amount
	silent := 0 // foreign attempts that do not report what they hold
	for _, n := range m.nodes {
		for key, old := range n.settled {
			if now.Sub(old.at) > l.settle {
				delete(n.settled, key)
			}
		}
		// The attempts of an offline node have ended with its lease.
		if !n.present || n.state == v1.NodeOffline {
			continue
		}
		for _, a := range n.snap.GetRunning() {
			key := claimKey{run: a.GetRunId(), task: a.GetTask(), claim: a.GetClaim()}
			if c := n.claimed[key]; c != nil {
				c.seen = true
				known.add(c.grant)
			} else if old, ok := n.settled[key]; ok {
				known.add(old.grant)
			} else if _, twice := n.foreign[key]; !twice {
				g, told := grantOf(a)
				if !told {
					silent++
				}
				known.add(g)
				n.foreign[key] = g
				n.enter(key.run, g)
				l.foreign[key] = n
				m.charge(&m.foreign, g)
			}
		}
		reported.milliCores = max(reported.milliCores, thousandthsOf(n.snap.GetReservedCores()))
		reported.memoryMB = max(reported.memoryMB, int64(n.snap.GetReservedMemoryMb()))
	}
	// Together, the silent attempts hold what remains of the machine's reported sum.
	if silent > 0 {
		m.foreign.milliCores += max(0, reported.milliCores-known.milliCores)
		m.foreign.memoryMB += max(0, reported.memoryMB-known.memoryMB)
	}
}

// grantOf returns what a running attempt reports to hold. told is false if the attempt reports
// nothing, as attempts of a worker that does not report do.
func grantOf(a *v1.RunningAttempt) (g grant, told bool) {
	if a.GetRemote() {
		return grant{numa: noNUMA, remote: true}, true
	}
	g = grant{
		milliCores: thousandthsOf(a.GetCores()),
		memoryMB:   int64(a.GetMemoryMb()),
		gpus:       a.GetGpus(),
		gpuPart:    a.GetGpuPart(),
		numa:       noNUMA,
	}
	if a.NumaNode != nil {
		g.numa = int(a.GetNumaNode())
	}
	return g, g.milliCores > 0 || g.memoryMB > 0 || len(g.gpus) > 0
}

// releaseForeign marks an attempt that another queue had placed as ended. It returns the node of
// the attempt, or nil if the attempt is unknown.
func (l *ledger) releaseForeign(key claimKey, now time.Time) *node {
	n := l.foreign[key]
	if n == nil {
		return nil
	}
	g, m := n.foreign[key], n.machine
	delete(l.foreign, key)
	delete(n.foreign, key)
	n.leave(key.run, g)
	n.settled[key] = released{at: now, grant: g}
	m.discharge(&m.foreign, g)
	// What silent attempts hold is known only as a sum, so it is cleared when the last foreign
	// attempt ends.
	if m.foreign.tasks == 0 {
		m.foreign = amount{}
		m.spread()
	}
	l.noteRoom(m)
	return n
}

// foreignNodeOf returns the node and the key of a task that an earlier queue placed. The node is nil
// if there is none.
func (l *ledger) foreignNodeOf(runID, task string) (*node, claimKey) {
	for key, n := range l.foreign {
		if key.run == runID && key.task == task {
			return n, key
		}
	}
	return nil, claimKey{}
}

// liftForeign temporarily removes what a foreign attempt holds. The returned function restores it.
func (l *ledger) liftForeign(n *node, key claimKey) (restore func()) {
	g, m := n.foreign[key], n.machine
	delete(n.foreign, key)
	n.leave(key.run, g)
	m.discharge(&m.foreign, g)
	return func() {
		n.foreign[key] = g
		n.enter(key.run, g)
		m.charge(&m.foreign, g)
	}
}

package placement

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// countForeign finds what runs on a machine and was not placed by this queue:
// after a restart, whatever the queue before it had placed.
func (q *Queue) countForeign(m *machine, now time.Time) {
	var known, reported amount
	silent := 0 // foreign attempts that do not report what they hold
	for _, n := range m.nodes {
		for key, old := range n.settled {
			if now.Sub(old.at) > q.opts.Settle {
				delete(n.settled, key)
			}
		}
		// What was on a node that is offline has ended with its lease.
		if !n.present || n.state == v1.NodeOffline {
			continue
		}
		for _, a := range n.snap.GetRunning() {
			key := claimKey{run: a.GetRunId(), task: a.GetTask(), claim: a.GetClaim()}
			if r := n.claimed[key]; r != nil {
				r.seen = true
				known.add(r.grant)
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
				q.foreign[key] = n
				m.charge(&m.foreign, g)
			}
		}
		reported.milliCores = max(reported.milliCores, thousandthsOf(n.snap.GetReservedCores()))
		reported.memoryMB = max(reported.memoryMB, int64(n.snap.GetReservedMemoryMb()))
	}
	// Together, those that do not report hold what remains of the machine's sum.
	if silent > 0 {
		m.foreign.milliCores += max(0, reported.milliCores-known.milliCores)
		m.foreign.memoryMB += max(0, reported.memoryMB-known.memoryMB)
	}
}

// grantOf reads what a running attempt holds. One that holds nothing may be of a
// worker that does not report.
func grantOf(a *v1.RunningAttempt) (g grant, told bool) {
	if a.GetRemote() {
		return grant{numa: noNUMA, remote: true}, true
	}
	g = grant{
		milliCores: thousandthsOf(a.GetCores()),
		memoryMB:   int64(a.GetMemoryMb()),
		gpus:       a.GetGpus(),
		numa:       noNUMA,
	}
	if a.NumaNode != nil {
		g.numa = int(a.GetNumaNode())
	}
	return g, g.milliCores > 0 || g.memoryMB > 0 || len(g.gpus) > 0
}

// releaseForeign notes that an attempt which another queue had placed is over,
// and returns the node that it was on, nil when it is not known.
func (q *Queue) releaseForeign(key claimKey) *node {
	n := q.foreign[key]
	if n == nil {
		return nil
	}
	g, m := n.foreign[key], n.machine
	delete(q.foreign, key)
	delete(n.foreign, key)
	n.leave(key.run, g)
	n.settled[key] = released{at: q.opts.Now(), grant: g}
	m.discharge(&m.foreign, g)
	// What those that do not report hold is known of all of them only.
	if m.foreign.tasks == 0 {
		m.foreign = amount{}
		m.spread()
	}
	q.capacityOn(n)
	return n
}

// liftForeign is lift for an attempt that this queue has not placed.
func (n *node) liftForeign(key claimKey) (back func()) {
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

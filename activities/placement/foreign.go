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
				c := l.foreignClaim(n, key, a, g)
				n.foreign[key] = c
				n.enter(key.run, g)
				l.foreign[key] = n
				l.accounts.hold(c.account, quantityOf(g), now)
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

// foreignClaim returns the claim of an attempt that the snapshot of a node shows.
func (l *ledger) foreignClaim(n *node, key claimKey, a *v1.RunningAttempt, g grant) *claim {
	of := Run{ID: key.run, Owner: a.GetOwner(), Workflow: a.GetWorkflow()}
	c := &claim{
		key: key, node: n, account: l.accounts.runOf(of), grant: g, isForeign: true, seen: true, limit: a.GetTimeout().AsDuration(),
		kind: kind{owner: of.Owner, workflow: of.Workflow, task: baseName(key.task)},
	}
	if t := a.GetStartedAt(); t != nil {
		c.assignedAt = t.AsTime()
	}
	return c
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
	c, m := n.foreign[key], n.machine
	g := c.grant
	delete(l.foreign, key)
	delete(n.foreign, key)
	l.accounts.release(c.account, quantityOf(g), now)
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

// foreignClaimOf returns the claim of a task that an earlier queue placed, or nil if there is none.
func (l *ledger) foreignClaimOf(runID, task string) *claim {
	for key, n := range l.foreign {
		if key.run == runID && key.task == task {
			return n.foreign[key]
		}
	}
	return nil
}

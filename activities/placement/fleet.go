package placement

import (
	"cmp"
	"container/list"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// node is a node that is present, or is gone while attempts still hold it.
type node struct {
	name    string
	snap    *v1.NodeSnapshot
	present bool
	machine *machine

	held   map[claimKey]*request
	holds  amount
	perRun map[string]int // tasks by run, ours and foreign
	byAge  *list.List     // held requests, the oldest first

	priorities map[int32]int // held requests by priority
	keptBack   bool          // in Queue.keptBack
	wantedAt   uint64        // number of the level that wanted was found at
	wanted     bool          // something more urgent waits that could use the node

	foreign map[claimKey]struct{} // running there, and not placed by this queue
	settled map[claimKey]released // released not long ago

	freed    bool // in Queue.freed
	measured bool
	mean     time.Duration // of the time from assignment to release
}

// machine is what nodes of one machine share.
type machine struct {
	nodes    []*node // the present ones
	holds    amount
	foreign  amount // held by attempts that this queue has not placed
	unseenMB int64  // memory of assignments that no snapshot shows yet
	gpus     int    // different GPUs that the nodes report
}

// released is a claim that snapshots may go on to show for a while.
type released struct {
	at   time.Time
	need need
}

// tasks is the number of tasks that run on the node, or are on their way to it.
func (n *node) tasks() int { return n.holds.tasks + len(n.foreign) }

// slots is the number of tasks that the node runs at once; a node that does not
// say has the default of a worker.
func (n *node) slots() int {
	if p := int(n.snap.GetMaxParallel()); p > 0 {
		return p
	}
	return max(int(n.snap.GetCpu().GetCores()), 4)
}

// SetNodes replaces the fleet with the live nodes and their newest snapshots,
// which must not be modified afterwards. A node that is left out gets nothing
// new; what has been given to it stays given until it is released.
func (q *Queue) SetNodes(snaps []*v1.NodeSnapshot) {
	live := make(map[string]*v1.NodeSnapshot, len(snaps))
	for _, s := range snaps {
		if s != nil {
			live[s.GetName()] = s
		}
	}
	changed := false
	for name, n := range q.nodes {
		if live[name] == nil && n.present {
			changed = true
			n.present = false
			q.discard(n)
		}
	}
	for name, s := range live {
		n := q.nodes[name]
		if n == nil {
			n = &node{name: name, held: map[claimKey]*request{}, byAge: list.New(), settled: map[claimKey]released{}, priorities: map[int32]int{}}
			q.nodes[name] = n
		}
		if !n.present || !sameSnapshot(n.snap, s) {
			changed = true
			n.present, n.snap = true, s
		}
	}
	if changed {
		q.rebuild()
		q.fleetChanged = true
	}
}

func sameSnapshot(a, b *v1.NodeSnapshot) bool {
	return a == b || b.GetSequence() > 0 && a.GetSequence() == b.GetSequence() && a.GetIncarnation() == b.GetIncarnation()
}

// discard drops a node that is gone and holds nothing.
func (q *Queue) discard(n *node) {
	if !n.present && n.holds.tasks == 0 {
		delete(q.nodes, n.name)
	}
}

// rebuild works out from the snapshots all that nodes and machines hold.
func (q *Queue) rebuild() {
	now := q.opts.Now()
	clear(q.machines)
	clear(q.foreign)
	q.present = q.present[:0]
	for _, n := range q.nodes {
		n.machine = q.machineOf(n)
		n.machine.holds.merge(n.holds)
		n.foreign = map[claimKey]struct{}{}
		n.perRun = map[string]int{}
		for key, r := range n.held {
			n.perRun[key.run]++
			r.seen = false
		}
		if n.present {
			q.present = append(q.present, n)
		}
	}
	slices.SortFunc(q.present, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	for _, n := range q.present {
		n.machine.nodes = append(n.machine.nodes, n)
	}
	for _, m := range q.machines {
		q.countForeign(m, now)
	}
	for _, n := range q.nodes {
		for _, r := range n.held {
			if !r.seen {
				n.machine.unseenMB += r.shape.need.memoryMB
			}
		}
	}
}

func (q *Queue) machineOf(n *node) *machine {
	// A node that does not name its machine is one. The prefix keeps it from
	// sharing with a machine of that name.
	id := "machine " + n.snap.GetMachine()
	if n.snap.GetMachine() == "" {
		id = "node " + n.name
	}
	m := q.machines[id]
	if m == nil {
		m = &machine{}
		q.machines[id] = m
	}
	return m
}

// countForeign finds what runs on a machine and was not placed by this queue:
// after a restart, whatever the queue before it had placed. Snapshots tell the
// cores and memory of all attempts on a machine together, so what is foreign
// is what remains of that after the known ones.
func (q *Queue) countForeign(m *machine, now time.Time) {
	var known, reported amount
	gpus := map[int32]struct{}{}
	for _, n := range m.nodes {
		for key, old := range n.settled {
			if now.Sub(old.at) > q.opts.Settle {
				delete(n.settled, key)
			}
		}
		for _, a := range n.snap.GetRunning() {
			key := claimKey{run: a.GetRunId(), task: a.GetTask(), claim: a.GetClaim()}
			if r := n.held[key]; r != nil {
				r.seen = true
				known.add(r.shape.need)
			} else if old, ok := n.settled[key]; ok {
				known.add(old.need)
			} else if _, twice := n.foreign[key]; !twice {
				n.foreign[key] = struct{}{}
				n.perRun[key.run]++
				q.foreign[key] = n
				m.foreign.tasks++
			}
		}
		for _, g := range n.snap.GetGpus() {
			gpus[g.GetIndex()] = struct{}{}
		}
		reported.milliCores = max(reported.milliCores, int64(n.snap.GetReservedCores()*1000))
		reported.memoryMB = max(reported.memoryMB, int64(n.snap.GetReservedMemoryMb()))
	}
	m.gpus = len(gpus)
	if m.foreign.tasks > 0 {
		m.foreign.milliCores = max(0, reported.milliCores-known.milliCores)
		m.foreign.memoryMB = max(0, reported.memoryMB-known.memoryMB)
	}
}

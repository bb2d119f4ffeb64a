package placement

import "time"

// meanWeight is the weight of the newest attempt in a node's mean: the last
// dozen or so attempts make up nearly all of it.
const meanWeight = 0.2

// hold gives a waiting request to a node.
func (q *Queue) hold(r *request, n *node, score float64) {
	need := r.shape.need
	r.state, r.node, r.score, r.assignedAt = assigned, n, score, q.now
	n.held[r.key()] = r
	n.holds.add(need)
	n.perRun[r.run.id]++
	n.priorities[r.priority]++
	r.age = n.byAge.PushBack(r)
	n.machine.holds.add(need)
	n.machine.unseenMB += need.memoryMB
}

// free gives back what an assigned request holds.
func (q *Queue) free(r *request) {
	n, need, now := r.node, r.shape.need, q.opts.Now()
	delete(n.held, r.key())
	n.byAge.Remove(r.age)
	n.holds.sub(need)
	n.machine.holds.sub(need)
	if !r.seen {
		n.machine.unseenMB -= need.memoryMB
	}
	n.leave(r.run.id)
	if n.priorities[r.priority]--; n.priorities[r.priority] == 0 {
		delete(n.priorities, r.priority)
	}
	n.settled[r.key()] = released{at: now, need: need}
	n.measure(now.Sub(r.assignedAt))
	q.discard(n)
	q.roomOn(n)
}

// releaseForeign notes that an attempt which another queue had placed is over.
func (q *Queue) releaseForeign(key claimKey) {
	n := q.foreign[key]
	if n == nil {
		return
	}
	delete(q.foreign, key)
	delete(n.foreign, key)
	n.leave(key.run)
	n.settled[key] = released{at: q.opts.Now()}
	m := n.machine
	// What it held is not known on its own, only what all foreign ones hold.
	if m.foreign.tasks--; m.foreign.tasks == 0 {
		m.foreign = amount{}
	}
	q.roomOn(n)
}

func (n *node) leave(runID string) {
	if n.perRun[runID]--; n.perRun[runID] <= 0 {
		delete(n.perRun, runID)
	}
}

// roomOn has the next pass look at the nodes of the machine.
func (q *Queue) roomOn(n *node) {
	for _, m := range n.machine.nodes {
		q.lookAt(m)
	}
}

func (q *Queue) lookAt(n *node) {
	if !n.freed {
		n.freed = true
		q.freed = append(q.freed, n)
	}
}

func (n *node) measure(took time.Duration) {
	if !n.measured {
		n.measured, n.mean = true, took
		return
	}
	n.mean += time.Duration(meanWeight * float64(took-n.mean))
}

// view is a node as a shape sees it during a pass.
type view struct {
	*shape
	n       *node
	stretch int // 1, or aheadFactor where the node is filled ahead
}

func (q *Queue) look(s *shape, n *node) view {
	v := view{shape: s, n: n, stretch: 1}
	if q.fillsAhead(n) {
		v.stretch = aheadFactor
	}
	return v
}

func (v view) totalMilli() int64    { return int64(v.n.snap.GetCpu().GetCores()) * 1000 }
func (v view) totalMemory() int64   { return int64(v.n.snap.GetMemory().GetTotalMb()) }
func (v view) usedMilli() int64     { return v.n.machine.holds.milliCores + v.n.machine.foreign.milliCores }
func (v view) availableMB() float64 { return v.n.snap.GetMemory().GetAvailableMb() }

// freeMemory is what the ledger of the machine has left, but no more than what
// is really there once the assignments have started that no snapshot shows yet.
func (v view) freeMemory() int64 {
	m := v.n.machine
	return min(
		v.totalMemory()-m.holds.memoryMB-m.foreign.memoryMB,
		int64(v.availableMB())-m.unseenMB,
	)
}

func (v view) freeGPUs() int {
	return min(len(v.n.snap.GetGpus())-v.n.holds.gpus, v.n.machine.gpus-v.n.machine.holds.gpus)
}

func (v view) slotFree(stretch int) bool { return v.n.tasks() < v.n.slots()*stretch }

func (v view) coresFree(stretch int) bool {
	return v.need.milliCores == 0 || v.usedMilli()+v.need.milliCores <= v.totalMilli()*int64(stretch)
}

// waitsThere tells whether the request would have to wait on the node, in the
// part of its queue that is filled ahead.
func (v view) waitsThere() bool { return !v.slotFree(1) || !v.coresFree(1) }

package placement

import (
	"slices"
	"time"

	"switchyard/workflows/names"
)

// meanWeight is the weight of the newest attempt in a node's moving average of attempt durations.
// The last dozen or so attempts make up nearly all of the average.
const meanWeight = 0.2

// hold assigns a waiting request to a node and charges the node for it.
func (q *Queue) hold(r *request, c candidate) {
	n := c.n
	r.state, r.node, r.assignedAt = assigned, n, q.now
	r.why = reckoning{score: c.score(q.opts.Weights.Task), figures: n.figures, tasks: q.opts.Weights.forTasks(c.tasks), pinned: c.pinned}
	v := q.look(r.class, n)
	r.grant = v.choose()
	n.claimed[r.key()] = r
	n.enter(r.run.id, r.grant)
	if !r.grant.remote {
		n.priorities[r.priority]++
		r.age = n.byAge.PushBack(r)
	}
	n.machine.unseenMB += r.grant.memoryMB
	n.machine.charge(&n.machine.holds, r.grant)
	if q.opts.Placed != nil {
		q.opts.Placed(r.class.taskType, q.now.Sub(r.queuedAt))
	}
}

// free returns the resources that an assigned request holds.
func (q *Queue) free(r *request) {
	n, now := r.node, q.opts.Now()
	delete(n.claimed, r.key())
	if !r.seen {
		n.machine.unseenMB -= r.grant.memoryMB
	}
	n.machine.discharge(&n.machine.holds, r.grant)
	n.leave(r.run.id, r.grant)
	n.settled[r.key()] = released{at: now, grant: r.grant}
	if !r.grant.remote {
		n.byAge.Remove(r.age)
		if n.priorities[r.priority]--; n.priorities[r.priority] == 0 {
			delete(n.priorities, r.priority)
		}
		if !r.cutShort {
			n.measure(now.Sub(r.assignedAt))
		}
	}
	q.capacityOn(n)
	q.discard(n)
}

// enter counts a task of a run on the node.
func (n *node) enter(runID string, g grant) {
	n.perRun[runID]++
	if g.remote {
		n.remotes++
	} else {
		n.tasks++
	}
}

// leave is the inverse of enter.
func (n *node) leave(runID string, g grant) {
	if g.remote {
		n.remotes--
	} else {
		n.tasks--
	}
	if n.perRun[runID]--; n.perRun[runID] <= 0 {
		delete(n.perRun, runID)
	}
}

// capacityOn makes the next pass look at all nodes of the machine again.
func (q *Queue) capacityOn(n *node) {
	for _, m := range n.machine.nodes {
		q.touch(m)
	}
}

// touch makes every class look at the node again.
func (q *Queue) touch(n *node) {
	q.moved = true
	q.touched.note(n, len(q.listed))
}

func (n *node) measure(took time.Duration) {
	if !n.measured {
		n.measured, n.mean = true, took
		return
	}
	n.mean += time.Duration(meanWeight * float64(took-n.mean))
}

// view is a node as one request class sees it during a pass.
type view struct {
	*requestClass
	n       *node
	now     time.Time
	stretch int // 1, or prefetchFactor if the queue may prefetch to the node
}

func (q *Queue) look(s *requestClass, n *node) view {
	v := view{requestClass: s, n: n, now: q.now, stretch: 1}
	// A request for GPUs or for a NUMA node must not wait behind other requests that hold them.
	if s.need.gpus == 0 && s.need.numa == noNUMA && v.waitsThere() && q.prefetches(n) {
		v.stretch = prefetchFactor
	}
	return v
}

// gpuFree reports whether the GPU is held by no attempt and not in use for gaming.
func (v *view) gpuFree(index int32) bool {
	return !v.n.now.gaming && v.n.machine.gpuFree(index)
}

func (v *view) freeGPUs() int {
	free := 0
	for _, g := range v.n.gpus {
		if v.gpuFree(g.index) {
			free++
		}
	}
	return free
}

// gpuCapacity reports whether the requested GPUs are free.
func (v *view) gpuCapacity() bool {
	if v.need.gpus == 0 {
		return true
	}
	taken := func(index int) bool { return !v.gpuFree(int32(index)) }
	return v.freeGPUs() >= v.need.gpus && !slices.ContainsFunc(v.target.GPUIndices, taken)
}

// numaCapacity reports whether a NUMA node of the machine has enough cores and memory that no
// attempt is bound to. It ignores the kernel's figure for free memory, which leaves out the page
// cache.
func (v *view) numaCapacity(index int) bool {
	for _, p := range v.n.numa {
		if p.index != index {
			continue
		}
		bound := v.n.machine.boundTo(index)
		return bound.milliCores+v.need.milliCores <= p.milliCores && bound.memoryMB+v.need.memoryMB <= p.memoryMB
	}
	return false
}

func (v *view) slotFree(stretch int) bool {
	return v.need.remote || v.n.tasks < v.n.now.slots*stretch
}

// remoteFree reports whether the node can supervise one more remote attempt.
func (v *view) remoteFree() bool { return !v.need.remote || v.n.remotes < names.MaxRemoteAttempts }

func (v *view) coresFree(stretch int) bool {
	return v.need.milliCores == 0 || v.n.now.usedMilli+v.need.milliCores <= v.n.now.milliCores*int64(stretch)
}

// waitsThere reports whether the request would have to wait on the node, in the prefetched part of
// its queue.
func (v *view) waitsThere() bool { return !v.slotFree(1) || !v.coresFree(1) }

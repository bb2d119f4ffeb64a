package placement

import (
	"maps"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// benchAfter is the number of failures after which a node is benched. A single failure is an accident, and
	// with the default of three retries a task survives three failures.
	benchAfter = 3
	// benchWindow is how long a failure counts. It is longer than most benches, so that a node that fails
	// again right after its bench is benched again immediately.
	benchWindow = 5 * time.Minute
	// firstBench is about the time that a node needs to restart and receive its first tasks.
	firstBench = 30 * time.Second
	// longestBench bounds the doubling: a node that is repaired is back within this time.
	longestBench = 10 * time.Minute
)

// health records the failures of a node since the last attempt on it that completed. It outlives the node's
// entry in the fleet.
type health struct {
	failures []time.Time // at most benchAfter, newest last
	benches  int         // in a row
	until    time.Time   // end of the newest bench; zero if there is none
	counted  int         // failures that caused the newest bench
}

// settleNode records how a claim on a node ended. A failure of a request that was assigned before the previous
// counted failure does not count, because it has the same cause: a node that dies fails all its attempts at
// once.
func (q *Queue) settleNode(n *node, assignedAt time.Time, outcome string) {
	if outcome == v1.OutcomeSuspect {
		q.suspicions[n.name]++
	}
	q.opts.Settled(n.name, outcome)
	switch outcome {
	case v1.OutcomeDone:
		if n.health != nil {
			n.health = nil
			delete(q.healths, n.name)
		}
	case v1.OutcomeLost, v1.OutcomeSuspect, v1.OutcomeSystem:
		now := q.opts.Now()
		h := q.sick(n)
		if len(h.failures) > 0 && assignedAt.Before(h.failures[len(h.failures)-1]) {
			return
		}
		h.failures = slices.DeleteFunc(h.failures, func(at time.Time) bool { return now.Sub(at) > benchWindow })
		if h.failures = append(h.failures, now); len(h.failures) > benchAfter {
			h.failures = slices.Delete(h.failures, 0, 1)
		}
		if len(h.failures) == benchAfter {
			h.bench(now)
			q.fleetChanged = true
		}
	}
}

func (h *health) bench(now time.Time) {
	length := longestBench
	if h.benches < 8 { // further doubling would exceed the bound, and eventually overflow
		length = min(firstBench<<h.benches, longestBench)
	}
	h.benches++
	h.until, h.counted = now.Add(length), len(h.failures)
}

// sick returns the health record of a failing node and creates it if necessary. It also drops the records of
// nodes that have left and whose failures no longer count.
func (q *Queue) sick(n *node) *health {
	if n.health != nil {
		return n.health
	}
	now := q.opts.Now()
	for name, h := range q.healths {
		if q.nodes[name] == nil && !now.Before(h.until) && now.Sub(h.failures[len(h.failures)-1]) > benchWindow {
			delete(q.healths, name)
		}
	}
	n.health = &health{}
	q.healths[n.name] = n.health
	return n.health
}

// benchedUntil returns the end of the node's bench. ok is false if the node is not benched.
func (n *node) benchedUntil(now time.Time) (until time.Time, ok bool) {
	if n.health == nil || !now.Before(n.health.until) {
		return time.Time{}, false
	}
	return n.health.until, true
}

// Benched returns the nodes that get no tasks for a while because their attempts kept failing for system
// reasons, each with the end of its bench.
func (q *Queue) Benched() map[string]time.Time {
	now, out := q.opts.Now(), map[string]time.Time{}
	for _, n := range q.listed {
		if until, ok := n.benchedUntil(now); ok {
			out[n.name] = until
		}
	}
	return out
}

// Suspicions returns, for each known node by name, the number of dispatches that it has not picked up or not
// started.
func (q *Queue) Suspicions() map[string]int32 {
	maps.DeleteFunc(q.suspicions, func(name string, _ int32) bool { return q.nodes[name] == nil })
	return maps.Clone(q.suspicions)
}

// endBenches makes the queue look again at the nodes whose bench is over.
func (q *Queue) endBenches() {
	for name, h := range q.healths {
		n := q.nodes[name]
		if n != nil && !h.until.IsZero() && !q.now.Before(h.until) {
			h.until = time.Time{}
			q.touch(n)
			q.fleetChanged = true
		}
	}
}

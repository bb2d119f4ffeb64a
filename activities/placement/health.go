package placement

import (
	"maps"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// benchAfter is how many failures bench a node: one is an accident, and with
	// the default of three retries a task survives three.
	benchAfter = 3
	// benchWindow is how long a failure counts. It is longer than most benches, so
	// that a node which fails again at once is benched again at once.
	benchWindow = 5 * time.Minute
	// firstBench is as long as a node takes to restart and to be given its first tasks.
	firstBench = 30 * time.Second
	// longestBench bounds the doubling: a node that was repaired is back by then.
	longestBench = 10 * time.Minute
)

// health is what the queue knows of the failures of a node since an attempt on
// it last ran to its end. It outlives the node's entry in the fleet.
type health struct {
	failures []time.Time // at most benchAfter, the newest last
	benches  int         // in a row
	until    time.Time   // end of the newest bench; zero: none
	counted  int         // failures that it is for
}

// settleNode takes note of how a claim on a node ended. What was assigned
// before the failure that was counted last fell to the same fault: a node that
// dies takes all its attempts along and is no worse for that.
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
	if h.benches < 8 { // more would pass any bound, and one day overflow
		length = min(firstBench<<h.benches, longestBench)
	}
	h.benches++
	h.until, h.counted = now.Add(length), len(h.failures)
}

// sick returns the record of a node that fails, and drops those of nodes that
// have left and would not be benched any more.
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

// benchedUntil returns the end of the node's bench; ok is false when there is none.
func (n *node) benchedUntil(now time.Time) (until time.Time, ok bool) {
	if n.health == nil || !now.Before(n.health.until) {
		return time.Time{}, false
	}
	return n.health.until, true
}

// Benched returns the nodes that get nothing for a while because what was given
// to them kept failing for reasons of the system, and until when.
func (q *Queue) Benched() map[string]time.Time {
	now, out := q.opts.Now(), map[string]time.Time{}
	for _, n := range q.listed {
		if until, ok := n.benchedUntil(now); ok {
			out[n.name] = until
		}
	}
	return out
}

// Suspicions returns how many dispatches the nodes that are there have not picked up, or not started, by name.
func (q *Queue) Suspicions() map[string]int32 {
	maps.DeleteFunc(q.suspicions, func(name string, _ int32) bool { return q.nodes[name] == nil })
	return maps.Clone(q.suspicions)
}

// endBenches has the nodes looked at again whose bench is over.
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

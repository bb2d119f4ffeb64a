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

// healths holds the health records of failing nodes.
type healths struct {
	byName map[string]*health
	// suspicions counts, by node, the dispatches that the node has not picked up or not started.
	suspicions map[string]int32
	nodeOf     func(name string) *node
	log        *fleetLog
	settled    func(node, outcome string)
}

func newHealths(nodeOf func(name string) *node, log *fleetLog, settled func(node, outcome string)) *healths {
	return &healths{byName: map[string]*health{}, suspicions: map[string]int32{}, nodeOf: nodeOf, log: log, settled: settled}
}

// healthOf returns the health record of a node, or nil if it has no failures.
func (hs *healths) healthOf(name string) *health { return hs.byName[name] }

// settle records how a claim on a node ended. A failure of a request that was assigned before the previous
// counted failure does not count, because it has the same cause: a node that dies fails all its attempts at
// once.
func (hs *healths) settle(n *node, assignedAt time.Time, outcome string, now time.Time) {
	if outcome == v1.OutcomeSuspect {
		hs.suspicions[n.name]++
	}
	hs.settled(n.name, outcome)
	switch outcome {
	case v1.OutcomeDone:
		if n.health != nil {
			n.health = nil
			delete(hs.byName, n.name)
		}
	case v1.OutcomeLost, v1.OutcomeSuspect, v1.OutcomeSystem:
		if hs.recordOf(n, now).fail(assignedAt, now) {
			hs.log.changed = true
		}
	}
}

// fail counts a failure. It reports whether the failure benches the node.
func (h *health) fail(assignedAt, now time.Time) (benched bool) {
	if len(h.failures) > 0 && assignedAt.Before(h.failures[len(h.failures)-1]) {
		return false
	}
	h.failures = slices.DeleteFunc(h.failures, func(at time.Time) bool { return now.Sub(at) > benchWindow })
	if h.failures = append(h.failures, now); len(h.failures) > benchAfter {
		h.failures = slices.Delete(h.failures, 0, 1)
	}
	if len(h.failures) < benchAfter {
		return false
	}
	h.bench(now)
	return true
}

func (h *health) bench(now time.Time) {
	length := longestBench
	if h.benches < 8 { // further doubling would exceed the bound, and eventually overflow
		length = min(firstBench<<h.benches, longestBench)
	}
	h.benches++
	h.until, h.counted = now.Add(length), len(h.failures)
}

// recordOf returns the health record of a failing node and creates it if necessary. It also drops the records of
// nodes that have left and whose failures no longer count.
func (hs *healths) recordOf(n *node, now time.Time) *health {
	if n.health != nil {
		return n.health
	}
	for name, h := range hs.byName {
		if hs.nodeOf(name) == nil && !now.Before(h.until) && now.Sub(h.failures[len(h.failures)-1]) > benchWindow {
			delete(hs.byName, name)
		}
	}
	n.health = &health{}
	hs.byName[n.name] = n.health
	return n.health
}

// benchedUntil returns the end of the node's bench. ok is false if the node is not benched.
func (n *node) benchedUntil(now time.Time) (until time.Time, ok bool) {
	if n.health == nil || !now.Before(n.health.until) {
		return time.Time{}, false
	}
	return n.health.until, true
}

// endBenches makes the queue look again at the nodes whose bench is over.
func (hs *healths) endBenches(now time.Time) {
	if len(hs.byName) == 0 {
		return // most passes do nothing else
	}
	for _, name := range slices.Sorted(maps.Keys(hs.byName)) {
		n, h := hs.nodeOf(name), hs.byName[name]
		if n != nil && !h.until.IsZero() && !now.Before(h.until) {
			h.until = time.Time{}
			hs.log.noteRoom(n)
			hs.log.changed = true
		}
	}
}

// nextEnd returns the earliest end of a bench. ok is false if no node is benched.
func (hs *healths) nextEnd() (at time.Time, ok bool) {
	for name, h := range hs.byName {
		if hs.nodeOf(name) != nil && !h.until.IsZero() && (!ok || h.until.Before(at)) {
			at, ok = h.until, true
		}
	}
	return at, ok
}

// suspicionsByNode returns the suspicions of the nodes that are still known.
func (hs *healths) suspicionsByNode() map[string]int32 {
	maps.DeleteFunc(hs.suspicions, func(name string, _ int32) bool { return hs.nodeOf(name) == nil })
	return maps.Clone(hs.suspicions)
}

package placement

import (
	"cmp"
	"container/list"
	"time"
)

// meanWeight is the weight of the newest attempt in a node's moving average of attempt durations.
// The last dozen or so attempts make up nearly all of the average.
const meanWeight = 0.2

// claimKey identifies a dispatch of a task across runs.
type claimKey struct {
	run, task string
	claim     int32
}

// compare orders keys in any fixed order.
func (k claimKey) compare(o claimKey) int {
	return cmp.Or(cmp.Compare(k.run, o.run), cmp.Compare(k.task, o.task), cmp.Compare(k.claim, o.claim))
}

// claim is the place that an assigned request has on a node.
type claim struct {
	key        claimKey
	priority   int32
	node       *node
	account    *account // of the run
	kind       kind
	assignedAt time.Time     // of a foreign attempt, when it started, or zero if unknown
	limit      time.Duration // of the attempt, or 0 for none
	grant      grant
	age        *list.Element // in holdings.byAge
	cutShort   bool          // its duration is not representative of attempts
	seen       bool          // the node's snapshot lists it as running
	isForeign  bool          // in holdings.foreign
}

// holdings is what attempts hold on one node: the claims that this queue has placed there, the
// foreign attempts, and what they leave behind.
type holdings struct {
	tasks   int // running on the node or assigned to it, without remote ones
	remotes int // running elsewhere under the node's supervision, such as in a cluster

	claimed map[claimKey]*claim
	perRun  map[string]int // tasks by run, including foreign ones
	byAge   *list.List     // claims that take a slot, oldest first

	priorities map[int32]int         // number of claims that take a slot, by priority
	foreign    map[claimKey]*claim   // attempts on the node that this queue has not placed
	settled    map[claimKey]released // recently released claims

	measured bool
	mean     time.Duration // moving average of the time from assignment to release
}

// released is a released claim, which snapshots may still show for a while.
type released struct {
	at    time.Time
	grant grant
}

func newHoldings() holdings {
	return holdings{
		claimed:    map[claimKey]*claim{},
		perRun:     map[string]int{},
		byAge:      list.New(),
		priorities: map[int32]int{},
		foreign:    map[claimKey]*claim{},
		settled:    map[claimKey]released{},
	}
}

// hold adds a claim.
func (h *holdings) hold(c *claim) {
	h.claimed[c.key] = c
	h.enter(c.key.run, c.grant)
	if !c.grant.remote {
		h.priorities[c.priority]++
		c.age = h.byAge.PushBack(c)
	}
}

// withdraw undoes hold.
func (h *holdings) withdraw(c *claim) {
	delete(h.claimed, c.key)
	h.leave(c.key.run, c.grant)
	if c.grant.remote {
		return
	}
	h.byAge.Remove(c.age)
	if h.priorities[c.priority]--; h.priorities[c.priority] == 0 {
		delete(h.priorities, c.priority)
	}
}

// noteEnded records a claim that has ended.
func (h *holdings) noteEnded(c *claim, now time.Time) {
	h.settled[c.key] = released{at: now, grant: c.grant}
	if !c.grant.remote && !c.cutShort {
		h.measure(now.Sub(c.assignedAt))
	}
}

// enter counts a task of a run.
func (h *holdings) enter(runID string, g grant) {
	h.perRun[runID]++
	if g.remote {
		h.remotes++
	} else {
		h.tasks++
	}
}

// leave undoes enter.
func (h *holdings) leave(runID string, g grant) {
	if g.remote {
		h.remotes--
	} else {
		h.tasks--
	}
	if h.perRun[runID]--; h.perRun[runID] <= 0 {
		delete(h.perRun, runID)
	}
}

// resetCounts forgets all counts of tasks.
func (h *holdings) resetCounts() {
	clear(h.perRun)
	h.tasks, h.remotes = 0, 0
}

func (h *holdings) measure(took time.Duration) {
	if !h.measured {
		h.measured, h.mean = true, took
		return
	}
	h.mean += time.Duration(meanWeight * float64(took-h.mean))
}

// isBrisk reports whether attempts take less than a bound: their mean duration, and the oldest
// claim so far.
func (h *holdings) isBrisk(bound time.Duration, now time.Time) bool {
	if !h.measured || h.mean >= bound {
		return false
	}
	oldest := h.byAge.Front()
	return oldest == nil || now.Sub(oldest.Value.(*claim).assignedAt) < bound
}

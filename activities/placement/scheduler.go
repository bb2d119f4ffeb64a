package placement

import (
	"container/heap"
	"math"
	"time"
)

// scheduler assigns waiting requests to nodes, in passes.
type scheduler struct {
	fleet          *fleet
	demand         *demand
	eval           *evaluator
	reservations   *reservations
	picker         *picker
	reasons        *reasons
	weights        *Weights
	reasonInterval time.Duration
	placed         func(taskType string, waited time.Duration) // may be nil
}

func newScheduler(opts Options) *scheduler {
	f, classes, eval := newFleet(opts), newRequestClasses(), newEvaluator(opts.PrefetchBelow)
	rs := &reservations{eval: eval, classes: classes, log: f.log}
	return &scheduler{
		fleet:        f,
		demand:       newDemand(classes, rs),
		eval:         eval,
		reservations: rs,
		picker: &picker{
			fleet:        f,
			eval:         eval,
			reservations: rs,
			perTask:      opts.Weights.Task,
			sampleAbove:  opts.SampleAbove,
			sample:       opts.Sample,
			rand:         opts.Rand,
		},
		reasons:        &reasons{fleet: f, eval: eval, weights: opts.Weights},
		weights:        opts.Weights,
		reasonInterval: opts.ReasonInterval,
		placed:         opts.Placed,
	}
}

// place makes a pass if anything has changed, and gives up the requests whose placement time-out
// has expired.
func (sc *scheduler) place(now time.Time) {
	sc.eval.now = now
	sc.demand.admit(now)
	sc.fleet.healths.endBenches(now)
	if sc.demand.hasNews || sc.fleet.log.hasNews() || sc.reservations.reordered {
		sc.pass()
	}
	for _, s := range sc.demand.classes.active {
		if s.notice.isDue(now) {
			sc.updateReason(s)
		}
	}
	sc.giveUp()
}

func (sc *scheduler) pass() {
	if sc.reservations.reordered || sc.fleet.log.changed {
		sc.reservations.free()
	}
	order := sc.startOrder()
	sc.reservations.startLevel(math.MaxInt32)
	for {
		if sc.reservations.reordered && (len(order) == 0 || order[0].waiting[0].priority < sc.reservations.level.priority) {
			sc.reservations.reconsider(&order)
		}
		if len(order) == 0 {
			break
		}
		s := order[0]
		sc.reservations.reach(s.waiting[0].priority)
		c, ok := sc.picker.pick(s)
		if !ok {
			s.inOrder = false
			sc.fail(s)
			heap.Pop(&order)
			continue
		}
		sc.assign(sc.demand.takeFirst(s), c)
		if len(s.waiting) > 0 {
			heap.Fix(&order, 0)
			continue
		}
		s.inOrder = false
		sc.demand.retire(s)
		order.popFirst()
	}
	sc.demand.hasNews = false
	sc.fleet.log.endPass()
}

// startOrder returns the classes that may fit some node, most urgent first, and ends the part of
// the others in the pass.
func (sc *scheduler) startOrder() classHeap {
	active := sc.demand.classes.active
	order := make(classHeap, 0, len(active))
	for _, s := range active {
		sc.picker.sync(s)
		if s.prospects.mayFit() {
			s.inOrder = true
			order = append(order, s)
		}
	}
	for _, s := range active {
		if !s.inOrder {
			sc.fail(s)
		}
	}
	heap.Init(&order)
	return order
}

// assign assigns a request to a node and charges the node for it.
func (sc *scheduler) assign(r *request, c candidate) {
	n, s := c.n, &r.class.spec
	v := sc.eval.viewOf(s, n)
	r.state = assigned
	r.why = reckoning{score: c.score(sc.weights.Task), figures: n.figures, tasks: sc.weights.forTasks(c.tasks), pinned: c.pinned}
	r.place = claim{key: r.key(), priority: r.priority, node: n, assignedAt: sc.eval.now, grant: v.choose()}
	sc.fleet.ledger.hold(&r.place)
	if sc.placed != nil {
		sc.placed(s.taskType, sc.eval.now.Sub(r.queuedAt))
	}
	sc.demand.report(r)
}

// fail ends the class's part in a pass: its remaining requests fit no node.
func (sc *scheduler) fail(s *requestClass) {
	sc.updateReason(s)
	sc.demand.reportFresh(s)
}

// updateReason updates the reason of a request class that fits no node, and reports it to the
// waiting requests if it has changed and a report is due. Building a reason looks at every node, so
// updateReason skips it unless a report or a new request needs it.
func (sc *scheduler) updateReason(s *requestClass) {
	n, now := &s.notice, sc.eval.now
	turned := n.setImpossible(!s.prospects.isPossible(), sc.reasonInterval, now)
	if turned {
		sc.demand.timeouts.restart(s, now)
	}
	n.outdated = n.outdated || sc.fleet.log.changed
	due := turned || n.isDue(now)
	if !due && (len(s.fresh) == 0 || now.Sub(n.reasonAt) < sc.reasonInterval) {
		return
	}
	n.set(sc.reasons.reasonFor(&s.spec), now)
	if !due || !n.report(now) {
		return
	}
	for _, r := range s.waiting {
		sc.demand.report(r)
	}
}

// giveUp ends the requests whose placement time-out has expired.
func (sc *scheduler) giveUp() {
	now := sc.eval.now
	for _, s := range sc.demand.timeouts.due(now) {
		reason := sc.reasons.reasonFor(&s.spec) // the last reported reason may be out of date
		for _, r := range s.expired(now) {
			sc.demand.giveUp(r, reason)
		}
		sc.demand.timeouts.stop(s)
		if s.notice.impossible {
			sc.demand.timeouts.startAll(s)
		}
	}
}

// nextDeadline returns the earliest time at which a pass may give up or place a request, or report why it waits, although
// nothing else has happened. ok is false if there is no such time.
func (sc *scheduler) nextDeadline() (at time.Time, ok bool) {
	at, ok = sc.demand.nextDeadline()
	if len(sc.demand.classes.active) == 0 {
		return at, ok
	}
	if end, benched := sc.fleet.healths.nextEnd(); benched && (!ok || end.Before(at)) {
		at, ok = end, true
	}
	for _, s := range sc.demand.classes.active {
		if n := &s.notice; n.outdated && (!ok || n.reportAt.Before(at)) {
			at, ok = n.reportAt, true
		}
	}
	return at, ok
}

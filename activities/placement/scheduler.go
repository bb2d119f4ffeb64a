package placement

import (
	"math"
	"time"
)

// blockedInterval is the least time between two reports of a line about its quota, because every report becomes part of the
// history of a run.
const blockedInterval = 30 * time.Second

// scheduler assigns waiting requests to nodes, in passes.
type scheduler struct {
	fleet          *fleet
	demand         *demand
	eval           *evaluator
	accounts       *accounts
	order          *order
	durations      *durations
	reservations   *reservations
	guard          *prefetchGuard
	picker         *picker
	reasons        *reasons
	weights        *Weights
	reasonInterval time.Duration
	placed         func(taskType string, waited time.Duration) // may be nil
}

func newScheduler(opts Options) *scheduler {
	accounts := newAccounts(opts.FairHalfLife, opts.FIFO)
	f, classes, eval := newFleet(opts, accounts), newRequestClasses(), newEvaluator(opts.PrefetchBelow)
	pg := &prefetchGuard{eval: eval, classes: classes, log: f.log}
	d, o, ds := newDemand(classes, accounts, pg), &order{accounts: accounts}, newDurations()
	rs := &reservations{
		fleet:     f,
		eval:      eval,
		demand:    d,
		order:     o,
		durations: ds,
		rand:      opts.Rand,
		isOff:     opts.NoReservations,
	}
	return &scheduler{
		fleet:        f,
		demand:       d,
		eval:         eval,
		accounts:     accounts,
		order:        o,
		durations:    ds,
		reservations: rs,
		guard:        pg,
		picker: &picker{
			fleet:        f,
			eval:         eval,
			guard:        pg,
			reservations: rs,
			perTask:      opts.Weights.Task,
			sampleAbove:  opts.SampleAbove,
			sample:       opts.Sample,
			rand:         opts.Rand,
		},
		reasons:        &reasons{fleet: f, eval: eval, reservations: rs, weights: opts.Weights},
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
	sc.passIfNews()
	if sc.reservations.update(now) {
		sc.passIfNews()
	}
	for _, s := range sc.demand.classes.active {
		if s.notice.isDue(now) {
			sc.updateReason(s)
		}
	}
	sc.giveUp()
}

// passIfNews makes a pass if anything has changed since the last one.
func (sc *scheduler) passIfNews() {
	if sc.demand.hasNews || sc.fleet.log.hasNews() || sc.guard.reordered {
		sc.reservations.isStale = true
		sc.pass()
	}
}

func (sc *scheduler) pass() {
	if sc.guard.reordered || sc.fleet.log.changed {
		sc.guard.free()
	}
	sc.startOrder()
	sc.guard.startLevel(math.MaxInt32)
	for {
		l := sc.nextLine()
		if sc.guard.reordered && (l == nil || l.priority < sc.guard.level.priority) {
			sc.guard.reconsider(sc.order)
			l = sc.nextLine()
		}
		if l == nil {
			break
		}
		if s := l.class; !s.inOrder || !sc.mayFit(l) {
			sc.order.remove(l)
			continue
		}
		if why := l.account.exceeds(l.class.jointQuantity()); why != "" {
			sc.order.remove(l)
			sc.noteBlocked(l, why)
			continue
		}
		sc.guard.reach(l.priority)
		if !sc.placeNext(l) {
			sc.order.remove(l)
			sc.failLine(l)
			continue
		}
		sc.order.advance(l)
		if l.class.waiting == 0 {
			sc.order.close(l.class)
			sc.demand.retire(l.class)
		}
	}
	for _, s := range sc.demand.classes.active {
		if s.inOrder {
			s.inOrder = false
			sc.fail(s)
		}
	}
	sc.demand.hasNews = false
	sc.fleet.log.endPass()
}

// nextLine returns the next line, or nil if no class may still be placed.
func (sc *scheduler) nextLine() *line {
	if sc.order.classes == 0 {
		return nil
	}
	return sc.order.next()
}

// startOrder adds the lines of the classes that may fit some node to the order, and ends the part
// of the other classes in the pass.
func (sc *scheduler) startOrder() {
	active := sc.demand.classes.active
	sc.accounts.setUnit(active)
	sc.order.start(sc.eval.now)
	for _, s := range active {
		sc.picker.sync(s)
		s.soonest = 0
		if len(s.fresh) > 0 {
			s.reopenKept() // new requests may be shorter
		}
		if s.prospects.mayFit() {
			sc.order.open(s)
		}
	}
	for _, s := range active {
		if !s.inOrder {
			sc.fail(s)
		}
	}
	sc.order.sort()
}

// noteBlocked records which quota keeps a line waiting, or "" if none does, and reports a change to its requests unless one
// was reported a short time ago and the terms of owners have not changed since.
func (sc *scheduler) noteBlocked(l *line, why string) {
	if l.blocked == why || l.toldTerms == sc.accounts.revision && sc.eval.now.Sub(l.toldAt) < blockedInterval {
		return
	}
	l.blocked, l.toldAt, l.toldTerms = why, sc.eval.now, sc.accounts.revision
	for _, r := range l.requests {
		sc.demand.report(r)
	}
}

// failLine ends the part of a line in the pass: its first request fits no node. That holds for the
// later lines of the class, too, unless reservations have kept the request from some node.
func (sc *scheduler) failLine(l *line) {
	s := l.class
	sc.noteBlocked(l, "")
	if len(s.kept) == 0 {
		sc.order.close(s)
		sc.fail(s)
		return
	}
	s.soonest = math.MaxInt64
	if d, ok := sc.durations.expect(l.kind, l.first().limit); ok {
		s.soonest = d
	}
}

// mayFit reports whether a line of a class in the order may fit some node. If reservations have kept an
// earlier line from nodes, only a line with shorter attempts may, and the class looks at them again. An incomplete gang does not fit.
func (sc *scheduler) mayFit(l *line) bool {
	s := l.class
	if s.missing() > 0 {
		return false
	}
	if s.soonest == 0 {
		return true
	}
	if d, ok := sc.durations.expect(l.kind, l.first().limit); !ok || d >= s.soonest {
		return false
	}
	s.reopenKept()
	return true
}

// placeNext assigns the next request of a line, or all members of its gang. It returns false if they fit no node.
func (sc *scheduler) placeNext(l *line) (ok bool) {
	if l.class.gang != nil {
		return sc.placeGang(l)
	}
	c, ok := sc.picker.pick(l)
	if ok {
		r := sc.demand.takeFirst(l)
		sc.occupy(r, l, c)
		sc.assign(r)
	}
	return ok
}

// occupy charges a node for a request that is about to be assigned to it.
func (sc *scheduler) occupy(r *request, l *line, c candidate) {
	n := c.n
	v := sc.eval.viewOf(&r.class.spec, n)
	r.why = reckoning{score: c.score(sc.weights.Task), figures: n.figures, tasks: sc.weights.forTasks(c.tasks), pinned: c.pinned}
	r.place = claim{
		key: r.key(), priority: r.priority, node: n, account: r.run.account, kind: l.kind,
		assignedAt: sc.eval.now, limit: r.limit, grant: v.choose(),
	}
	sc.reservations.charge(r, n)
	r.place.occupy()
}

// assign assigns a request to the node that it occupies.
func (sc *scheduler) assign(r *request) {
	r.state = assigned
	sc.fleet.ledger.bill(&r.place)
	sc.reservations.cancel(r)
	if sc.placed != nil {
		sc.placed(r.class.taskType, sc.eval.now.Sub(r.queuedAt))
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
	turned := n.setImpossible(!sc.eval.isPossible(s, sc.fleet), sc.reasonInterval, now)
	if turned {
		sc.demand.timeouts.restart(s, now)
	}
	n.outdated = n.outdated || sc.fleet.log.changed
	due := turned || n.isDue(now)
	if !due && (len(s.fresh) == 0 || now.Sub(n.reasonAt) < sc.reasonInterval) {
		return
	}
	n.set(sc.reasons.reasonFor(&s.spec, s.first()), now)
	if !due || !n.report(now) {
		return
	}
	for r := range s.all() {
		sc.demand.report(r)
	}
}

// giveUp ends the requests whose placement time-out has expired.
func (sc *scheduler) giveUp() {
	now := sc.eval.now
	for _, s := range sc.demand.timeouts.due(now) {
		reason := sc.reasons.reasonFor(&s.spec, nil) // the last reported reason may be out of date
		for _, r := range s.expired(now) {
			sc.reservations.cancel(r)
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
	if due, isDue := sc.reservations.dueAt(); isDue && (!ok || due.Before(at)) {
		at, ok = due, true
	}
	for _, s := range sc.demand.classes.active {
		if n := &s.notice; n.outdated && (!ok || n.reportAt.Before(at)) {
			at, ok = n.reportAt, true
		}
	}
	return at, ok
}

package placement

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// reserveInterval is the time between two updates of the reservations.
	reserveInterval = 500 * time.Millisecond
	// mostReservations bounds the number of reservations, and with nodesPerReservation their part of the fleet: a node that
	// becomes free for a large task is partly idle meanwhile.
	mostReservations    = 64
	nodesPerReservation = 4
	// reserveSearches is the number of requests for which one update searches a node, and reserveSample the number of nodes that
	// a search compares. The soonest of 128 nodes is on average among the soonest hundredth of all.
	reserveSearches = 8
	reserveSample   = 128
)

// reservation keeps the room that becomes free on a node for a request that fits no node yet. Less
// urgent requests start on the machine only beside it or before it.
//
// This is backfilling as in EASY (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995), for several
// requests rather than for the first one only: for a request q on a node,
//
//	at    = the earliest time at which q fits, if attempts end as expected
//	spare = what is free on the node at that time, less what q takes
//
// and a less urgent request r may start there if now + duration(r) <= at, or if spare covers r.
type reservation struct {
	request *request   // the first of those that it is held for
	members []*request // all of them: one, or all members of a gang
	node    *node
	since   time.Time
	outlook
	isReported bool
}

// outlook is when a node is expected to have room for a request.
type outlook struct {
	at      time.Time
	isKnown bool // the ends of all attempts that must end first are known
	spare   quantity
}

// text explains the reservation to a request that it is held for, or to another one.
func (res *reservation) text(r *request) string {
	gang := res.request.class.gang
	out := "reserved on " + res.node.name
	switch isOwn := r.hasReserved(res); {
	case isOwn && gang != nil:
		out = "reserved on " + nodesOf(r.reserved) + " for " + count(len(res.members), "member")
	case !isOwn && gang != nil:
		out = "reserved for gang " + gang.GetTask() + " of run " + res.request.run.account.name
	case !isOwn:
		out = "reserved for task " + res.request.task + " of run " + res.request.run.account.name
	}
	if res.isKnown {
		return out + ", expected at " + res.at.UTC().Format("15:04:05 UTC")
	}
	return out + ", expected at an unknown time"
}

// reservations holds the reservations for the most urgent requests that fit no node.
type reservations struct {
	fleet     *fleet
	eval      *evaluator
	demand    *demand
	order     *order
	durations *durations
	rand      *rand.Rand
	isOff     bool
	held      []*reservation // the most urgent request first
	updated   time.Time      // when they were last updated
	isStale   bool           // something has changed since
	searches  int            // left in this update
}

// dueAt returns when the reservations must be updated. ok is false if they need not be.
func (rs *reservations) dueAt() (at time.Time, ok bool) {
	at, ok = rs.updated.Add(reserveInterval), rs.isStale
	for _, res := range rs.held {
		switch {
		case !res.node.now.active || res.node.now.refuses || !res.node.present:
			return rs.updated, !rs.isOff
		case !res.isReported && (!ok || res.reportAt().Before(at)):
			at, ok = res.reportAt(), true
		case res.isKnown && (!ok || res.at.Before(at)):
			at, ok = res.at, true
		}
	}
	if earliest := rs.updated.Add(reserveInterval); at.Before(earliest) {
		at = earliest
	}
	return at, ok && !rs.isOff
}

// reportAt returns when the reservation is reported to its run. The report becomes part of the run's history, so a
// reservation that soon ends is not reported.
func (res *reservation) reportAt() time.Time { return res.since.Add(2 * reserveInterval) }

// update decides anew which requests have reservations: the first request of each class, in the
// order of the queue, until a part of the fleet is reserved. A request keeps its node.
// It reports whether an update was due.
func (rs *reservations) update(now time.Time) (wasDue bool) {
	if at, ok := rs.dueAt(); !ok || now.Before(at) {
		return false
	}
	rs.updated, rs.isStale, rs.searches = now, false, reserveSearches
	rs.order.start(now)
	for _, s := range rs.demand.classes.active {
		if s.isReserving = !s.need.remote && s.missing() == 0 && rs.eval.isPossible(s, rs.fleet); s.isReserving {
			for _, l := range s.lines {
				rs.order.add(l)
			}
		}
	}
	rs.order.sort()
	former := rs.held
	rs.held = nil
	nodes := len(rs.fleet.listed)
	limit := min(max(nodes/nodesPerReservation, min(nodes, 2)), mostReservations)
	hasGang := false
	for len(rs.held) < limit {
		l := rs.order.next()
		if l == nil {
			break
		}
		rs.order.remove(l)
		if !l.class.isReserving || l.account.exceeds(l.class.jointQuantity()) != "" {
			continue
		}
		l.class.isReserving = false
		if l.class.gang == nil {
			if res := rs.reserve(l.first(), now); res != nil {
				rs.held = append(rs.held, res)
			}
			continue
		}
		// The most urgent gang gets what it needs, or else a gang as large as the limit would never start.
		if more := rs.reserveGang(l, now); !hasGang || len(rs.held)+len(more) <= limit {
			rs.held = append(rs.held, more...)
			hasGang = hasGang || len(more) > 0
		}
	}
	rs.replace(former, now)
	return true
}

// replace ends the former reservations that are not among the held ones, and starts the others.
func (rs *reservations) replace(former []*reservation, now time.Time) {
	for _, res := range former {
		if !slices.Contains(rs.held, res) {
			rs.end(res)
		}
	}
	for _, res := range rs.held {
		res.node.machine.reservation = res
		isDue := !res.isReported && !now.Before(res.reportAt())
		res.isReported = res.isReported || isDue
		for _, r := range res.members {
			if !r.hasReserved(res) {
				r.reserved = append(r.reserved, res)
			}
			if isDue {
				rs.demand.report(r)
			}
		}
	}
}

// hasReserved reports whether a reservation is held for the request.
func (r *request) hasReserved(res *reservation) bool { return slices.Contains(r.reserved, res) }

// end ends a reservation, so that all classes look at its node again.
func (rs *reservations) end(res *reservation) {
	for _, r := range res.members {
		r.reserved = slices.DeleteFunc(r.reserved, func(o *reservation) bool { return o == res })
	}
	if m := res.node.machine; m.reservation == res {
		m.reservation = nil
		rs.fleet.ledger.noteRoom(m)
	}
}

// cancel ends the reservations of a request that has none to wait for any more. A gang has no use for the rest of its own.
func (rs *reservations) cancel(r *request) {
	for _, res := range slices.Clone(r.reserved) {
		rs.held = slices.DeleteFunc(rs.held, func(o *reservation) bool { return o == res })
		rs.end(res)
	}
}

// reserve returns the reservation of a request: its former one, if the node can still serve it, or one on
// the node where it can start soonest. It returns nil if there is none.
func (rs *reservations) reserve(r *request, now time.Time) *reservation {
	if len(r.reserved) > 0 && !rs.isTaken(r.reserved[0].node) {
		res := r.reserved[0]
		if o, ok := rs.outlookOf(r.class, res.node, now); ok {
			rs.renew(res, o)
			return res
		}
	}
	if rs.searches == 0 {
		rs.isStale = true
		return nil
	}
	rs.searches--
	for _, p := range []*pool{&r.class.prospects.preferred, &r.class.prospects.avoided} {
		if res := rs.search(r, p, now); res != nil {
			return res
		}
	}
	return nil
}

// renew updates when the node of a reservation is expected to have room.
func (rs *reservations) renew(res *reservation, o outlook) {
	if o.isKnown != res.isKnown || o.isKnown && o != res.outlook {
		rs.fleet.ledger.noteRoom(res.node.machine)
	}
	res.outlook = o
}

// search returns a reservation for a request on the node of a pool where it can start soonest, or nil.
func (rs *reservations) search(r *request, p *pool, now time.Time) *reservation {
	var best *reservation
	for i := range min(len(p.nodes), reserveSample) {
		number := p.nodes[i]
		if len(p.nodes) > reserveSample {
			number = p.nodes[rs.rand.IntN(len(p.nodes))]
		}
		n := rs.fleet.numbered[number]
		if rs.isTaken(n) {
			continue
		}
		o, ok := rs.outlookOf(r.class, n, now)
		if !ok || best != nil && (o.at.After(best.at) || o.at.Equal(best.at) && n.name > best.node.name) {
			continue
		}
		best = &reservation{request: r, members: []*request{r}, node: n, since: now, outlook: o}
	}
	if best != nil {
		rs.fleet.ledger.noteRoom(best.node.machine) // the request may fit already
	}
	return best
}

// isTaken reports whether a more urgent request has a reservation on the node's machine.
func (rs *reservations) isTaken(n *node) bool {
	return slices.ContainsFunc(rs.held, func(res *reservation) bool { return res.node.machine == n.machine })
}

// outlookOf returns when a node is expected to have room for a request of a class. ok is false if
// the node accepts no tasks or could never run the class.
func (rs *reservations) outlookOf(s *requestClass, n *node, now time.Time) (o outlook, ok bool) {
	v := view{spec: &s.spec, n: n, now: now, stretch: 1}
	if !rs.accepts(s, &v) {
		return o, false
	}
	o = outlook{at: now, isKnown: true}
	if !fitsAll(rs.eval.byAmount, &v) {
		ok = rs.waitFor(&v, &o)
	} else {
		ok = true
		o.spare = v.spare()
	}
	return o, ok
}

// accepts reports whether the node of a view accepts tasks and could ever run the class.
func (rs *reservations) accepts(s *requestClass, v *view) bool {
	return v.n.present && s.names(v.n.name) && fitsAll(rs.eval.byCondition, v) && rs.eval.isSuitable(s, v)
}

// waitFor adds to an outlook when the attempts end that must end before the request of a view fits, and
// what is free then. It reports whether the request fits when all attempts have ended.
func (rs *reservations) waitFor(v *view, o *outlook) (fits bool) {
	for _, e := range rs.ends(v.n.machine, v.now) {
		defer rs.lift(e.claim)()
		o.addEnd(e)
		if fitsAll(rs.eval.byAmount, v) {
			o.spare = v.spare()
			return true
		}
	}
	return false
}

// addEnd adds the end of an attempt that must end first.
func (o *outlook) addEnd(e attemptEnd) {
	if e.at.After(o.at) {
		o.at = e.at
	}
	o.isKnown = o.isKnown && e.isKnown
}

// lift temporarily removes an attempt from its machine. The returned function restores it.
func (rs *reservations) lift(c *claim) (restore func()) {
	undo := rs.fleet.ledger.lift(c)
	if !c.seen {
		return undo
	}
	m := c.node.machine
	m.changeAvailable(c.grant.memoryMB)
	return func() {
		m.changeAvailable(-c.grant.memoryMB)
		undo()
	}
}

// attemptEnd is when an attempt is expected to end.
type attemptEnd struct {
	claim   *claim
	at      time.Time
	isKnown bool
}

// ends returns the ends of all attempts that hold a part of a machine, the earliest first.
func (rs *reservations) ends(m *machine, now time.Time) []attemptEnd {
	var out []attemptEnd
	for _, n := range m.nodes {
		for _, held := range []map[claimKey]*claim{n.claimed, n.foreign} {
			for _, c := range held {
				if !c.grant.remote {
					at, isKnown := rs.durations.endOf(c, now)
					out = append(out, attemptEnd{claim: c, at: at, isKnown: isKnown})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b attemptEnd) int {
		if a.isKnown != b.isKnown {
			return compareBool(b.isKnown, a.isKnown)
		}
		return cmp.Or(a.at.Compare(b.at), a.claim.key.compare(b.claim.key))
	})
	return out
}

// spare returns what is left of the node beside a request. Of GPUs, only those count that are wholly free.
func (v *view) spare() quantity {
	isFree := func(g gpu) bool { return v.n.machine.gpuUse(g.index).Fits(nil, g.memoryMB) }
	return quantity{
		slotUnit:   int64(v.n.now.slots - v.n.tasks - 1),
		coreUnit:   v.n.now.milliCores - v.n.now.usedMilli - v.need.milliCores,
		memoryUnit: v.n.now.freeMB - v.need.memoryMB,
		gpuUnit:    int64(v.countGPUs(isFree)-v.need.gpus) * 1000,
	}
}

// mayStart reports whether the next request of a line may be assigned to a node in spite of the
// reservation on its machine. isAhead is set if the request would wait in the node's queue.
func (rs *reservations) mayStart(l *line, n *node, isAhead bool) bool {
	res := n.machine.reservation
	r := l.first()
	if res == nil || r.hasReserved(res) || l.class.need.remote || rs.demand.accounts.isBefore(r, res.request, rs.eval.now) {
		return true
	}
	return !isAhead && (rs.endsBefore(r, res) || res.spare.covers(l.class.need.quantity()))
}

// endsBefore reports whether a request is expected to end before a reservation is due.
func (rs *reservations) endsBefore(r *request, res *reservation) bool {
	d, ok := rs.durations.expect(r.kind(), r.limit)
	return ok && res.isKnown && !rs.eval.now.Add(d).After(res.at)
}

// charge takes what a request needs from the spare part of the reservation on the machine of a node, if the request uses that.
func (rs *reservations) charge(r *request, n *node) {
	if rs.usesSpare(r, n) {
		n.machine.reservation.spare.sub(r.class.need.quantity())
	}
}

// discharge undoes charge.
func (rs *reservations) discharge(r *request, n *node) {
	if rs.usesSpare(r, n) {
		n.machine.reservation.spare.add(r.class.need.quantity())
	}
}

// usesSpare reports whether a request on a node takes from what a reservation for another request leaves there.
func (rs *reservations) usesSpare(r *request, n *node) bool {
	res := n.machine.reservation
	return res != nil && !r.hasReserved(res) && !r.class.need.remote && !rs.endsBefore(r, res)
}

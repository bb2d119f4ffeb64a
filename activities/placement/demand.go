package placement

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// demand is everything that runs ask of the fleet: their requests, the request classes, and the
// reports that the runs have not taken yet. It knows nothing of nodes.
type demand struct {
	runs     map[string]*run
	reports  map[*run]struct{} // runs that have something to take
	classes  *requestClasses
	accounts *accounts
	delayed  delayHeap
	timeouts *timeouts
	watcher  orderWatcher
	seq      uint64
	hasNews  bool // there are requests that no pass has considered
}

// orderWatcher receives the changes in the order of the waiting requests.
type orderWatcher interface {
	// noteActive is called when a class has waiting requests again.
	noteActive(s *requestClass)
	// noteFirstChanged is called when a class has another first request than was, which may be nil.
	noteFirstChanged(s *requestClass, was *request)
}

func newDemand(classes *requestClasses, accounts *accounts, watcher orderWatcher) *demand {
	return &demand{
		runs:     map[string]*run{},
		reports:  map[*run]struct{}{},
		classes:  classes,
		accounts: accounts,
		timeouts: newTimeouts(),
		watcher:  watcher,
	}
}

// runOf returns the state of a run, which it creates if necessary.
func (d *demand) runOf(of Run) *run {
	r := d.runs[of.ID]
	if r == nil {
		r = &run{Run: of, account: d.accounts.runOf(of), tasks: map[string]*request{}, released: map[string]int32{}}
		r.account.users++
		d.runs[of.ID] = r
	}
	return r
}

// requestOf returns the newest request of a task, or nil if there is none.
func (d *demand) requestOf(runID, task string) *request {
	if owner := d.runs[runID]; owner != nil {
		return owner.tasks[task]
	}
	return nil
}

// anyMember returns the waiting request with the lowest name of the gang of a task, or nil if none waits.
func (d *demand) anyMember(runID, task string) (first *request) {
	if owner := d.runs[runID]; owner != nil {
		for name, r := range owner.tasks {
			if r.class.gang.GetTask() == task && r.state != assigned && (first == nil || name < first.task) {
				first = r
			}
		}
	}
	return first
}

// add adds a request, which waits from now on.
func (d *demand) add(owner *run, req *historyv1.TaskRequest, now time.Time) {
	d.seq++
	r := &request{
		run:      owner,
		task:     req.GetTask(),
		claim:    req.GetClaim(),
		priority: req.GetPriority(),
		queuedAt: now,
		arrived:  now,
		timeout:  req.GetPlacementTimeout().AsDuration(),
		limit:    req.GetTimeout().AsDuration(),
	}
	if t := req.GetQueuedAt(); t != nil {
		r.queuedAt = t.AsTime()
	}
	r.age = age{queuedAt: r.queuedAt.UnixNano(), seq: d.seq}
	owner.tasks[r.task] = r
	r.class = d.classes.classOf(owner.ID, req)
	if delay := delayOf(req.GetRefusals()); delay > 0 {
		r.due, r.delayed = r.arrived.Add(delay), delayText(delay, req.GetRefusals())
		heap.Push(&d.delayed, r)
		d.report(r)
		return
	}
	d.enqueue(r)
}

// enqueue makes the next pass try to place a request.
func (d *demand) enqueue(r *request) {
	s := d.classes.restore(r.class) // the class may have been dropped while the request was delayed
	r.class = s
	first := s.first()
	s.push(r)
	if d.classes.activate(s) {
		d.watcher.noteActive(s)
	}
	s.freshenGang()
	d.watcher.noteFirstChanged(s, first)
	if s.notice.impossible {
		d.timeouts.start(r)
	}
	d.hasNews = true
}

// admit enqueues the requests whose delay is over.
func (d *demand) admit(now time.Time) {
	for len(d.delayed) > 0 && !now.Before(d.delayed[0].due) {
		r := heap.Pop(&d.delayed).(*request)
		r.delayed = ""
		d.enqueue(r)
	}
}

// takeFirst removes the first request of a line, which has found a place.
func (d *demand) takeFirst(l *line) *request {
	s, r := l.class, l.first()
	first := s.first()
	s.drop(r)
	if s.first() != first {
		d.watcher.noteFirstChanged(s, first)
	}
	return r
}

// unqueue removes a waiting request.
func (d *demand) unqueue(r *request) {
	if r.delayed != "" {
		heap.Remove(&d.delayed, r.index)
		return
	}
	s := r.class
	first := s.first()
	s.drop(r)
	d.watcher.noteFirstChanged(s, first)
	switch {
	case s.waiting == 0:
		d.retire(s)
	case s.gang != nil:
		s.freshenGang()
		d.hasNews = true
	}
}

// retire marks a class without waiting requests as idle.
func (d *demand) retire(s *requestClass) {
	d.classes.retire(s)
	d.timeouts.stop(s)
}

// giveUp ends a waiting request because no node could ever run it.
func (d *demand) giveUp(r *request, reason string) {
	r.verdict = reason
	d.unqueue(r)
	r.state = givenUp
	d.report(r)
}

// remove ends a request that holds nothing.
func (d *demand) remove(r *request) {
	if r.state == waiting {
		d.unqueue(r)
	}
	r.state = gone
	delete(r.run.tasks, r.task)
}

// forget drops a run without requests.
func (d *demand) forget(r *run) {
	delete(d.reports, r)
	delete(d.runs, r.ID)
	r.account.users--
}

// runIDs returns the ids of the known runs in ascending order.
func (d *demand) runIDs() []string { return slices.Sorted(maps.Keys(d.runs)) }

// waitingCount returns the number of requests that wait for a node, delayed ones included.
func (d *demand) waitingCount() int { return d.classes.waitingCount() + d.delayed.Len() }

// nextDeadline returns the earliest time at which a delay is over or a placement time-out expires.
// ok is false if there is no such time.
func (d *demand) nextDeadline() (at time.Time, ok bool) {
	at, ok = d.timeouts.next()
	if len(d.delayed) > 0 && (!ok || d.delayed[0].due.Before(at)) {
		return d.delayed[0].due, true
	}
	return at, ok
}

package run

import (
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/definition"
)

// admitter owns the admission queue and the units in flight. It decides what starts, and takes back what has not started.
type admitter struct {
	*execution
	abandoned admissionPredecessors
	approvals admissionApprovals
	childRuns admissionRuns
	ends      admissionEnds
	evaluator asker
	locks     admissionLocks
	placer    admissionNodes

	queue *admission.Queue
	units map[int]*unit // by each of their members
}

// The admitter uses these parts of other components.
type (
	admissionPredecessors interface {
		isPending() bool
		text() string
	}
	admissionApprovals interface {
		ask(u *unit)
	}
	admissionRuns interface {
		start(u *unit)
	}
	admissionEnds interface {
		failBeforeStart(i int, a *v1.ConditionAnswer)
	}
	admissionLocks interface {
		acquire(u *unit)
		free(u *unit)
		waits(u *unit) bool
		restoreUnit(u *unit)
	}
	admissionNodes interface {
		takeAssignment(u *unit) (assignment, bool)
		request(u *unit)
		unrequest(u *unit)
		waitsForNode(lead int, claim int32) bool
		release(i int, claim int32, outcome string)
	}
)

// unit is the set of tasks that share one placement: a task, an instance, or the instances of a batch.
type unit struct {
	lead    int   // represents the unit in the admission queue and in the placement queue
	members []int // in execution order, without those that have ended separately
	claim   int32 // of the lead
	lock    admission.Lock
}

// want queues a startable task for admission. The name of its lock may have to be evaluated first.
func (ad *admitter) want(i int) {
	if definition.HasLockTemplate(ad.core.Definition(i)) && ad.records.Of(i).Lock == "" {
		ad.evaluator.ask(question{task: i, kind: asksLock, claim: ad.core.Task(i).Claim, answered: func(a *v1.ConditionAnswer) { ad.lockNamed(i, a) }})
		return
	}
	ad.queue.Add(ad.admissible(i))
}

// lockNamed continues with a task whose lock name has been evaluated. All attempts of the task use that name.
func (ad *admitter) lockNamed(i int, a *v1.ConditionAnswer) {
	if a.GetError() != "" {
		ad.ends.failBeforeStart(i, a)
		return
	}
	ad.records.At(i).Lock = a.GetText()
	ad.want(i)
}

// admissible returns the admission request of a task.
func (ad *admitter) admissible(i int) admission.Request {
	def := ad.core.Definition(i)
	size, auto := definition.BatchOf(def)
	return admission.Request{
		Task:        i,
		Group:       ad.core.Group(i),
		Priority:    def.GetPriority(),
		Concurrency: ad.concurrency(i),
		Batch:       admission.Batch{Size: size, Auto: auto},
		Lock:        ad.lockOf(i),
		Free:        def.GetType() == v1.TypeApproval,
		Child:       def.GetType() == v1.TypeRun,
	}
}

// concurrency returns how many units of a task's instances may be in flight at once; 0 means no limit.
func (ad *admitter) concurrency(i int) int {
	if part := ad.in.GetPartition(); part != nil {
		return int(part.GetConcurrency())
	}
	return int(ad.core.Definition(i).GetConcurrency())
}

// admit starts the units that admission lets through.
func (ad *admitter) admit() {
	if ad.draining || ad.abandoned.isPending() {
		return // the next execution or a later round admits
	}
	for _, next := range ad.queue.Next() {
		u := &unit{lead: next.Lead, members: next.Members, claim: ad.core.Task(next.Lead).Claim, lock: next.Lock}
		for _, m := range u.members {
			ad.units[m] = u
		}
		if u.lock.Name != "" {
			ad.locks.acquire(u)
		} else {
			ad.enter(u)
		}
	}
}

// enter starts an admitted unit that holds its lock.
func (ad *admitter) enter(u *unit) {
	switch ad.core.Definition(u.lead).GetType() {
	case v1.TypeApproval:
		ad.approvals.ask(u)
	case v1.TypeRun:
		ad.childRuns.start(u)
	default:
		ad.placer.request(u)
	}
}

// leave releases the lock and the admission slot of a unit that is no longer in flight.
func (ad *admitter) leave(u *unit) {
	for _, m := range u.members {
		delete(ad.units, m)
	}
	ad.locks.free(u)
	ad.queue.Done(u.lead)
}

// removeMember removes a task from its unit, which is in flight without the task from then on.
func (ad *admitter) removeMember(u *unit, i int) {
	u.members = slices.DeleteFunc(u.members, func(m int) bool { return m == i })
	delete(ad.units, i)
}

// open creates the admission queue with the limits of the run.
func (ad *admitter) open() {
	ad.queue = admission.New(int(ad.in.GetDefinition().GetMaxParallel()))
	ad.queue.LimitChildren(ad.limits.Children)
}

// unitOf returns the unit in flight that a task belongs to, or nil if there is none.
func (ad *admitter) unitOf(i int) *unit { return ad.units[i] }

// isPaused reports whether nothing new starts because a person has paused the run.
func (ad *admitter) isPaused() bool { return ad.queue.Paused() }

// pause stops new starts.
func (ad *admitter) pause() { ad.queue.Pause() }

// resume lets tasks start again.
func (ad *admitter) resume() { ad.queue.Resume() }

// hold keeps a task from starting.
func (ad *admitter) hold(i int) { ad.queue.Hold(i) }

// unhold lets a held task start.
func (ad *admitter) unhold(i int) { ad.queue.Release(i) }

// placed records that a unit has been given a node.
func (ad *admitter) placed(lead int) { ad.queue.Placed(lead) }

// observe records that n instances of a task took d in total.
func (ad *admitter) observe(task, n int, d time.Duration) { ad.queue.Observe(task, n, d) }

// waitReason returns why a task that has not requested a node is waiting.
func (ad *admitter) waitReason(i int) string {
	why, text := ad.queue.Why(i), ad.abandoned.text()
	if why != "" && text != "" {
		return text
	}
	return why
}

// save hands over to the next execution whether the run is paused. The records name the held tasks.
func (ad *admitter) save(c *v1.RunState) { c.Paused = ad.isPaused() }

// restore holds the tasks, and pauses the run, as in the previous execution.
func (ad *admitter) restore(c *v1.RunState) {
	for _, name := range c.GetHeld() {
		if i, ok := ad.core.Index(name); ok {
			ad.hold(i)
			r := ad.records.At(i)
			r.Held, r.HeldBy = true, c.GetHeldBy()[name]
			ad.status.RecordChanged(i)
		}
	}
	if c.GetPaused() {
		ad.pause()
	}
}

// freeChildren returns how many more child workflows may open.
func (ad *admitter) freeChildren() int { return ad.queue.FreeChildren() }

// setChildren sets the number of child workflows that are partitions.
func (ad *admitter) setChildren(n int) { ad.queue.SetChildren(n) }

// track registers a unit that was in flight in the previous execution, with the lock that it holds.
func (ad *admitter) track(u *unit) {
	for _, m := range u.members {
		ad.units[m] = u
	}
	ad.queue.UnderWay(ad.admissible(u.lead))
	ad.locks.restoreUnit(u)
}

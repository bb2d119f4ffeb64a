package run

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// unit is the set of tasks that share one placement: a task, an instance, or the instances of a batch.
type unit struct {
	lead    int   // represents the unit in the admission queue and in the placement queue
	members []int // in execution order, without those that have ended separately
	claim   int32 // of the lead
	lock    admission.Lock
}

// want queues a startable task for admission. The name of its lock may have to be evaluated first.
func (r *run) want(i int) {
	if definition.HasLockTemplate(r.core.Definition(i)) && r.status.Lock(i) == "" {
		r.ask(question{task: i, kind: asksLock, claim: r.core.Task(i).Claim})
		return
	}
	r.admission.Add(r.admissible(i))
}

// lockNamed continues with a task whose lock name has been evaluated. All attempts of the task use that name.
func (r *run) lockNamed(i int, a *v1.ConditionAnswer) {
	if a.GetError() != "" {
		r.failBeforeStart(i, a)
		return
	}
	r.status.Extras(i).Lock = a.GetText()
	r.want(i)
}

// admissible returns the admission request of a task.
func (r *run) admissible(i int) admission.Request {
	def := r.core.Definition(i)
	size, auto := definition.BatchOf(def)
	return admission.Request{
		Task:        i,
		Group:       r.core.Group(i),
		Priority:    def.GetPriority(),
		Concurrency: r.concurrency(i),
		Batch:       admission.Batch{Size: size, Auto: auto},
		Lock:        r.lockOf(i),
		Free:        def.GetType() == v1.TypeApproval,
		Child:       def.GetType() == v1.TypeRun,
	}
}

// concurrency returns how many units of a task's instances may be in flight at once; 0 means no limit.
func (r *run) concurrency(i int) int {
	if part := r.in.GetPartition(); part != nil {
		return int(part.GetConcurrency())
	}
	return int(r.core.Definition(i).GetConcurrency())
}

// admit starts the units that admission lets through.
func (r *run) admit() {
	if r.draining || len(r.abandoned) > 0 {
		return // the next execution or a later round admits
	}
	for _, next := range r.admission.Next() {
		u := &unit{lead: next.Lead, members: next.Members, claim: r.core.Task(next.Lead).Claim, lock: next.Lock}
		for _, m := range u.members {
			r.units[m] = u
		}
		if u.lock.Name != "" {
			r.acquire(u)
		} else {
			r.enter(u)
		}
	}
}

// enter starts an admitted unit that holds its lock.
func (r *run) enter(u *unit) {
	switch r.core.Definition(u.lead).GetType() {
	case v1.TypeApproval:
		r.askApproval(u)
	case v1.TypeRun:
		r.startChild(u)
	default:
		r.request(u)
	}
}

// leave releases the lock and the admission slot of a unit that is no longer in flight.
func (r *run) leave(u *unit) {
	for _, m := range u.members {
		delete(r.units, m)
	}
	r.free(u)
	r.admission.Done(u.lead)
}

// withdraw cancels the pending request of a task.
func (r *run) withdraw(i int) {
	if r.admission.Remove(i) {
		return
	}
	u := r.units[i]
	if u == nil {
		return // one of its expressions is being evaluated
	}
	if i != u.lead {
		u.members = slices.DeleteFunc(u.members, func(m int) bool { return m == i })
		delete(r.units, i)
		return
	}
	r.unrequest(u)
	r.leave(u)
	for _, m := range u.members {
		if m != i {
			r.again(m, "", "")
		}
	}
}

// again moves a task whose request was withdrawn to a new claim and requests it again. A withdrawn claim is never used again.
func (r *run) again(i int, reason, text string) {
	if rec := r.core.Task(i); rec.State == v1.TaskQueued && !rec.Backoff {
		r.events = append(r.events, dag.Placed{Task: i, Claim: rec.Claim},
			dag.Ended{Task: i, Claim: rec.Claim, State: v1.AttemptMoved, Reason: reason, Error: text, ExitCode: -1})
	}
}

// suspend withdraws a unit that has not started yet, so that its members queue for admission again.
func (r *run) suspend(u *unit, reason, text string) {
	r.unrequest(u)
	r.leave(u)
	for _, m := range u.members {
		r.again(m, reason, text)
	}
}

// lockOf returns the lock that a task must hold while it runs, or a lock without a name if it needs none.
func (r *run) lockOf(i int) admission.Lock {
	def := r.core.Definition(i)
	name := definition.LockName(def)
	if definition.HasLockTemplate(def) {
		name = r.status.Lock(i)
	}
	switch {
	case name == "":
		return admission.Lock{}
	case def.GetMutex() != "":
		return admission.Lock{Name: names.TaskLock(name), Limit: 1}
	}
	return admission.Lock{Name: names.TaskLock(name), Limit: int(def.GetSemaphore().GetLimit())}
}

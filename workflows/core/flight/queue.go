package flight

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
)

// want queues a startable task for admission. The name of its lock may have to be evaluated first.
func (s *State) want(i int) {
	if definition.HasLockTemplate(s.core.Definition(i)) && s.records.Of(i).Lock == "" {
		s.do(NameLock{Task: i, Claim: s.claimOf(i)})
		return
	}
	s.queue.Add(s.admissible(i))
}

// LockNamed continues with a task whose lock name has been evaluated. All attempts of the task use that name.
func (s *State) LockNamed(i int, a *historyv1.ConditionAnswer) []Effect {
	if a.GetError() != "" {
		return s.FailBeforeStart(i, a)
	}
	s.records.At(i).Lock = a.GetText()
	s.want(i)
	return s.take()
}

// admissible returns the admission request of a task.
func (s *State) admissible(i int) admission.Request {
	def := s.core.Definition(i)
	size, auto := definition.BatchOf(def)
	isGang := def.GetGang() != nil
	if isGang {
		size = int(def.GetGang().GetSize())
	}
	concurrency := def.GetConcurrency() // 0 means no limit
	if part := s.Input.GetPartition(); part != nil {
		concurrency = part.GetConcurrency()
	}
	return admission.Request{
		Task:        i,
		Group:       s.core.Group(i),
		Priority:    def.GetPriority(),
		Concurrency: int(concurrency),
		Batch:       admission.Batch{Size: size, Auto: auto, Whole: isGang},
		Lock:        s.lockOf(i),
		Free:        def.GetType() == v1.TypeApproval,
		Child:       def.GetType() == v1.TypeRun,
	}
}

// Admit starts the units that admission lets through.
func (s *State) Admit(now time.Time) []Effect {
	for _, next := range s.queue.Next() {
		if s.core.Definition(next.Lead).GetGang() != nil {
			s.admitGang(next.Members, now)
			continue
		}
		u := &Unit{Lead: next.Lead, Members: next.Members, Claim: s.claimOf(next.Lead), lock: next.Lock}
		for _, m := range u.Members {
			s.units[m] = u
		}
		if u.lock.Name != "" {
			s.acquire(u)
		} else {
			s.enter(u, now)
		}
	}
	return s.take()
}

// enter starts an admitted unit that holds its lock.
func (s *State) enter(u *Unit, now time.Time) {
	def := s.core.Definition(u.Lead)
	switch {
	case v1.NeedsNode(def.GetType()):
		u.Phase = Waiting
		s.waiting++
		s.request(u)
	case definition.HasTemplates(def):
		u.Phase = Elsewhere
		s.do(Render{u.Lead, u.Claim})
	default:
		u.Phase = Elsewhere
		s.startElsewhere(u, def.GetSpec(), now)
	}
}

// Rendered continues with a task that needs no node once the expressions in its spec have been rendered.
func (s *State) Rendered(i int, a *historyv1.ConditionAnswer, now time.Time) []Effect {
	switch u := s.units[i]; {
	case u == nil:
	case a.GetError() != "":
		return s.FailBeforeStart(i, a)
	default:
		s.startElsewhere(u, a.GetRendered(), now)
	}
	return s.take()
}

// startElsewhere starts a task that needs no node.
func (s *State) startElsewhere(u *Unit, spec *structpb.Struct, now time.Time) {
	if s.core.Definition(u.Lead).GetType() == v1.TypeApproval {
		s.askPerson(u, spec, now)
	} else {
		s.startRun(u, spec)
	}
}

// leave releases the lock and the admission slot of a unit that is no longer in flight.
func (s *State) leave(u *Unit) {
	for _, m := range u.Members {
		s.forget(u, m)
	}
	s.free(u)
	u.Phase = Gone
	s.leaveSlot(u)
	s.freeWorkspace(u)
}

// removeMember removes a task from its unit, which is in flight without the task from then on.
func (s *State) removeMember(u *Unit, i int) {
	u.Members = slices.DeleteFunc(u.Members, func(m int) bool { return m == i })
	s.forget(u, i)
}

// forget removes a task from those in flight, unless it is in another unit by now.
func (s *State) forget(u *Unit, i int) {
	if s.units[i] == u {
		delete(s.units, i)
	}
}

// Withdraw cancels the pending request of a task.
func (s *State) Withdraw(i int) []Effect {
	if s.queue.Remove(i) {
		return nil
	}
	u := s.units[i]
	switch {
	case u == nil: // one of its expressions is being evaluated
	case i != u.Lead, u.Phase == Placed: // what remains of a placed unit is dispatched, or its placement is given back
		s.removeMember(u, i)
	default:
		members := slices.DeleteFunc(slices.Clone(u.Members), func(m int) bool { return m == i })
		s.unrequest(u)
		s.leave(u)
		for _, m := range members {
			s.moveToNewClaim(m, "", "")
		}
	}
	return s.take()
}

// moveToNewClaim requests a task whose request was withdrawn under a new claim. A withdrawn claim is never used again.
func (s *State) moveToNewClaim(i int, reason, text string) {
	if rec := s.core.Task(i); rec.State == v1.TaskQueued && !rec.Backoff {
		s.raise(dag.Placed{Task: i, Claim: rec.Claim}, s.moved(i, reason, text))
	}
}

// moved returns the event that makes a task queue again.
func (s *State) moved(i int, reason, text string) dag.Ended {
	return dag.Ended{Task: i, Claim: s.claimOf(i), State: v1.AttemptMoved, Reason: reason, Error: text, ExitCode: -1}
}

// requeue withdraws a unit that has not started yet, so that its members queue for admission again.
func (s *State) requeue(u *Unit, reason, text string) {
	s.unrequest(u)
	s.leave(u)
	for _, m := range u.Members {
		s.moveToNewClaim(m, reason, text)
	}
}

// giveBack releases the placement of a unit that has not started there.
func (s *State) giveBack(u *Unit, reason, text string) {
	if u.gang != nil {
		s.endReserving(u, s.memberEnd(u, v1.AttemptMoved, reason, text))
		return
	}
	s.placed = remove(s.placed, u)
	s.release(u, "")
	s.leave(u)
	for _, m := range u.Members {
		s.raise(s.moved(m, reason, text))
	}
}

// setAside withdraws the unstarted part of a unit, which then queues for admission again. Running tasks and tasks that wait for
// approval continue.
func (s *State) setAside(u *Unit, reason, text string) {
	switch u.Phase {
	case Placed, Reserving:
		s.giveBack(u, reason, text)
	case Waiting, Locking:
		s.requeue(u, reason, text)
	}
}

// Pause stops new starts.
func (s *State) Pause() { s.queue.Pause() }

// SetAllAside withdraws everything that has not started.
func (s *State) SetAllAside(reason, text string) []Effect {
	for _, u := range s.leads() {
		s.setAside(u, reason, text)
	}
	return s.take()
}

// Resume lets tasks start again.
func (s *State) Resume() { s.queue.Resume() }

// IsPaused reports whether nothing new starts because a person has paused the run.
func (s *State) IsPaused() bool { return s.queue.Paused() }

// Hold keeps a task from starting. by is who holds it, and why.
func (s *State) Hold(i int, by string) []Effect {
	s.hold(i, by)
	if u := s.units[i]; u != nil {
		s.setAside(u, v1.ReasonHeld, "a person holds it")
	}
	return s.take()
}

func (s *State) hold(i int, by string) {
	s.queue.Hold(i)
	r := s.records.At(i)
	r.Held, r.HeldBy = true, by
	s.do(Show{Task: i})
}

// Unhold lets a held task start.
func (s *State) Unhold(i int) []Effect {
	s.queue.Release(i)
	r := s.records.At(i)
	r.Held, r.HeldBy = false, ""
	return []Effect{Show{Task: i}}
}

// WaitText returns why a task that has not started waits, or why it waits again, or "".
func (s *State) WaitText(i int) string {
	own, why := s.records.Of(i), s.queue.Why(i)
	switch rec := s.core.Task(i); {
	case own.Held:
		return cmp.Or(own.HeldBy, "by a person")
	case own.Wait == "" && why != "" && s.HasAbandoned():
		return s.abandonedWait()
	default:
		return cmp.Or(own.Wait, why, rec.Error)
	}
}

// TakeBackRequests withdraws the requests for nodes and locks that the next execution might not repeat, because it may admit
// other tasks or form other batches. A placement or lock granted for such a request would never be used. It reports whether
// there is anything to send to the queue first.
func (s *State) TakeBackRequests() (effects []Effect, left bool) {
	for _, u := range s.leads() {
		if u.Phase == Locking || u.Phase == Waiting && s.dependsOnOthers(u.Lead) {
			s.requeue(u, v1.ReasonContinued, "the run continues as new")
			left = true
		}
	}
	return s.take(), left
}

// dependsOnOthers reports whether the request of a task depends on what else is waiting.
func (s *State) dependsOnOthers(i int) bool {
	a := s.admissible(i)
	return a.Batch.Auto || a.Batch.Size > 1 || a.Concurrency > 0 || a.Lock.Name != "" || s.Input.GetDefinition().GetMaxParallel() > 0 ||
		s.core.Definition(i).GetWorkspace() != ""
}

// FreeChildren returns how many more child workflows may open.
func (s *State) FreeChildren() int { return s.queue.FreeChildren() }

// SetChildren sets the number of child workflows that are partitions.
func (s *State) SetChildren(n int) { s.queue.SetChildren(n) }

// Measuring how long the instances of a task take costs a second or two. The next partition and the next execution reuse the
// estimate.

// DurationEstimate returns the duration estimate for the instances of a task, or nil if there is none.
func (s *State) DurationEstimate(task int) *historyv1.DurationEstimate {
	p := s.queue.DurationEstimate(task)
	if p.Instance <= 0 {
		return nil
	}
	return &historyv1.DurationEstimate{Instance: durationpb.New(p.Instance), Batch: int32(p.Batch)}
}

// Learn takes over a duration estimate that another partition or execution has made for the instances of a task.
func (s *State) Learn(task int, p *historyv1.DurationEstimate) {
	if p.GetInstance().AsDuration() > 0 {
		s.queue.Learn(task, admission.DurationEstimate{Instance: p.GetInstance().AsDuration(), Batch: int(p.GetBatch())})
	}
}

// totalWork returns the number of ended attempts that report both their start and their end, and their total duration. It uses
// only the clocks of the nodes: waits for the server or for this workflow would make units look long, and small units wait more
// often.
func totalWork(ends []End) (n int, took time.Duration) {
	for _, end := range ends {
		if from, to := end.Response.GetStartedAt(), end.Response.GetCompletedAt(); from != nil && to != nil {
			n++
			took += to.AsTime().Sub(from.AsTime())
		}
	}
	return n, took
}

package run

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/status"
)

// attempt is the work of a node on a task, an instance or a batch, with the Execute activity that waits for its end.
type attempt struct {
	assignment
	members []int
	cancel  workflow.CancelFunc
	stopped map[int]bool // members that are to be stopped; nil if none
	// steered is set while its node has not answered a request about it. unsure is set while it is unknown whether it is
	// suspended.
	steered, unsure bool
	// askedIn is the round in which its node was asked to detach it; 0 if it was not asked, or if it has detached.
	askedIn int
	// excuse is why its lease was lost although its node lives, or "".
	excuse string
	// detached is set while no activity waits for it. Nothing of it runs after leaseUntil unless it was reattached; zero if it
	// was never detached.
	detached   bool
	leaseUntil time.Time
	// isAway is set while its node is away, and isSought while the node is being asked for it. An attempt that is away is also
	// detached.
	isAway, isSought bool
}

// dispatch starts the attempts of units that have been given a node. A unit without remaining members gives its placement back.
func (r *run) dispatch() {
	for len(r.assignments) > 0 && r.dispatched < r.limits.InFlight {
		a := r.assignments[0]
		r.assignments = r.assignments[1:]
		members := r.membersOf(a)
		if len(members) == 0 {
			r.release(a.task, a.claim, "")
			r.leave(a.unit)
			continue
		}
		req, err := r.executeRequest(a, members)
		if err != nil {
			r.assignments = append([]assignment{a}, r.assignments...)
			r.wake()
			return
		}
		if err := limits.CheckSize(req); err != nil {
			r.release(a.task, a.claim, "")
			r.leave(a.unit)
			for _, m := range members {
				r.events = append(r.events, dag.Ended{
					Task: m, Claim: r.core.Task(m).Claim, State: v1.TaskFailed, Reason: v1.ReasonPayload, Error: err.Error(), ExitCode: -1, NoRetry: true,
				})
			}
			continue
		}
		r.execute(a, members, req)
	}
}

// membersOf returns the members of an assignment that are still to run there.
func (r *run) membersOf(a assignment) []int {
	return slices.DeleteFunc(slices.Clone(a.unit.members), func(m int) bool {
		t := r.core.Task(m)
		return t.State != v1.TaskAssigned || m == a.task && t.Claim != a.claim
	})
}

// giveBack releases the placement of a unit that has not started there.
func (r *run) giveBack(a assignment, reason, text string) {
	r.release(a.task, a.claim, "")
	r.leave(a.unit)
	for _, m := range a.unit.members {
		r.events = append(r.events, dag.Ended{
			Task: m, Claim: r.core.Task(m).Claim, State: v1.AttemptMoved, Reason: reason, Error: text, ExitCode: -1,
		})
	}
}

// stop ends the attempts of tasks. A task that has a node but has not started ends at once.
func (r *run) stop(tasks []int) {
	for _, i := range tasks {
		if a := r.attempts[i]; a != nil {
			if a.stopped == nil {
				a.stopped = map[int]bool{}
			}
			a.stopped[i] = true
			if a.isAway {
				r.endAway(a, v1.TaskCancelled)
				continue
			}
			if !a.detached {
				r.charge(commandCharge)
				a.cancel()
			}
			continue
		}
		if r.approvals[i] != nil {
			r.endElsewhere(i, status.NothingRan, dag.Ended{State: v1.TaskCancelled, ExitCode: -1})
			continue
		}
		if !r.stopChild(i) && !r.stopPartitions(i) {
			r.stopUnstarted(i)
		}
	}
}

// stopUnstarted ends a task that has a node but no started attempt.
func (r *run) stopUnstarted(i int) {
	u := r.units[i]
	k := slices.IndexFunc(r.assignments, func(a assignment) bool { return u != nil && a.unit == u })
	if k < 0 {
		return // its end is on the way
	}
	r.events = append(r.events, dag.Ended{Task: i, Claim: r.core.Task(i).Claim, State: v1.TaskCancelled, ExitCode: -1})
	delete(r.units, i)
	if u.members = slices.DeleteFunc(u.members, func(m int) bool { return m == i }); len(u.members) > 0 {
		return
	}
	a := r.assignments[k]
	r.assignments = slices.Delete(r.assignments, k, k+1)
	r.release(a.task, a.claim, "")
	r.leave(u)
}

func (r *run) execute(a assignment, members []int, req *v1.ExecuteRequest) {
	att := &attempt{assignment: a, members: members}
	for _, m := range members {
		r.attempts[m] = att
	}
	r.send(att, req)
}

// send starts the activity that begins or reattaches an attempt and waits for it.
func (r *run) send(att *attempt, req *v1.ExecuteRequest) {
	ctx, cancel := workflow.WithCancel(r.ctx)
	name, priority := r.core.Name(att.members[0]), r.core.Definition(att.task).GetPriority()
	options := options.Execute(req, name, att.queue, priority, r.in.GetOptions())
	options.HeartbeatTimeout = r.heartbeatTimeout(att)
	options.ScheduleToStartTimeout = max(options.ScheduleToStartTimeout, att.leaseUntil.Sub(workflow.Now(r.ctx)))
	att.cancel = cancel
	r.dispatched++
	r.pending.Watch(r.startActivityWith(ctx, options, names.ExecuteActivity, req, writtenIn(req)), func(f workflow.Future) {
		cancel()
		res, err := attemptAnswer(r.ctx, f)
		switch {
		case r.isAway(att, err):
			r.lose(att, err)
		case !r.outlives(att, res, err):
			r.settle(att, res, err)
		}
	})
}

// over ends an attempt with the result of its activity.
func (r *run) over(att *attempt, res *v1.ExecuteResponse, err error) {
	ends, outcome := r.dispatchEnds(att.assignment, att.members, att, res, err)
	if r.isRemote(att) {
		outcome = r.continueElsewhere(att, ends, outcome)
	} else if r.lasts(att) {
		for k := range ends { // its node has moved it only if it has not started
			ends[k].ended.NoRetry = true
		}
	} else if started := err != nil || res.GetStartedAt() != nil; started {
		outcome = r.judgeLostLease(att, ends, outcome)
	}
	r.dispatched--
	for _, m := range att.members {
		delete(r.attempts, m)
		r.status.SetSuspended(m, "")
		r.status.EndSilence(m)
		r.status.EndAway(m)
	}
	r.release(att.task, att.claim, outcome)
	r.leave(att.unit)
	if group := r.core.Group(att.members[0]); group >= 0 {
		if n, took := worked(ends); n > 0 {
			r.admission.Observe(group, n, took)
		}
	}
	for _, end := range ends {
		r.ended(end)
	}
}

// ended ends a dispatch. The dispatch fails if its update does not fit in the context of the run.
func (r *run) ended(end dispatchEnd) {
	r.addToContext(end.update, func(refusal string) {
		if refusal != "" {
			end.res.Result.ContextUpdate = nil
			end.ended.State, end.ended.Reason, end.ended.Error, end.ended.NoRetry = v1.TaskFailed, v1.ReasonContext, refusal, true
		}
		r.settled(end)
	})
}

// settled shows how a dispatch ended and reports the end to the core: at once, or when it is known whether the attempt may be
// retried.
func (r *run) settled(end dispatchEnd) {
	now := workflow.Now(r.ctx)
	r.asKilled(&end.ended)
	if !r.core.RetriesLeft(end.task) {
		addUnknownOutcome(&end.ended)
	}
	r.status.EndAttempt(end.task, end.shown(), now)
	end.res.AgentEvents = nil // the run has them as events; they are not part of a stored result
	r.keepResult(end)
	e := end.ended
	if v1.IsRetryableEnd(e.State) && !e.NoRetry && r.core.Definition(e.Task).GetRetry().GetWhen() != "" {
		r.ask(question{task: e.Task, kind: asksRetry, end: &end})
		return
	}
	r.events = append(r.events, e)
}

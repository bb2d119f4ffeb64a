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

// attempt is what a node has of a task, an instance or a batch, with the activity
// Execute that waits for its end.
type attempt struct {
	assignment
	members []int
	cancel  workflow.CancelFunc
	stopped map[int]bool // members that are not wanted any more; nil: none
	// steered says that its node has been asked for something and has not answered, and
	// unsure that it is unknown whether it was suspended.
	steered, unsure bool
	// askedIn is the round in which its node was asked to detach it, or 0 if it was not, or has done so.
	askedIn int
	// excuse says why its lease was lost although its node lives, or is "".
	excuse string
	// detached says that no activity waits for it, and leaseUntil is when nothing of it runs
	// unless it was reattached, or zero if it was never detached.
	detached   bool
	leaseUntil time.Time
	// isAway says that its node is away with it, and isSought that the node is asked for it. One that is away is detached.
	isAway, isSought bool
}

// dispatch starts the attempts whose units have been given a node. A unit of
// which nothing is wanted any more gives its place back.
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

// membersOf are the tasks of an assignment that still want to run there.
func (r *run) membersOf(a assignment) []int {
	return slices.DeleteFunc(slices.Clone(a.unit.members), func(m int) bool {
		t := r.core.Task(m)
		return t.State != v1.TaskAssigned || m == a.task && t.Claim != a.claim
	})
}

// giveBack gives back the place of a unit that has not started there.
func (r *run) giveBack(a assignment, reason, text string) {
	r.release(a.task, a.claim, "")
	r.leave(a.unit)
	for _, m := range a.unit.members {
		r.events = append(r.events, dag.Ended{
			Task: m, Claim: r.core.Task(m).Claim, State: v1.AttemptMoved, Reason: reason, Error: text, ExitCode: -1,
		})
	}
}

// stop ends the attempts of tasks. Of those that have a node and were not started
// yet nothing will be, and that is their end.
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

// stopUnstarted ends a task that has a node, and an attempt of which has not been started.
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

// send has an activity wait for an attempt, which it begins or reattaches.
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

// over ends an attempt as its activity has ended.
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

// ended ends a dispatch, which fails if the context of the run has no room for what it adds.
func (r *run) ended(end dispatchEnd) {
	r.addToContext(end.update, func(refusal string) {
		if refusal != "" {
			end.res.Result.ContextUpdate = nil
			end.ended.State, end.ended.Reason, end.ended.Error, end.ended.NoRetry = v1.TaskFailed, v1.ReasonContext, refusal, true
		}
		r.settled(end)
	})
}

// settled shows how a dispatch ended and reports it to the core, at once or when it is known
// whether the attempt may be repeated.
func (r *run) settled(end dispatchEnd) {
	now := workflow.Now(r.ctx)
	r.asKilled(&end.ended)
	if !r.core.RetriesLeft(end.task) {
		addUnknownOutcome(&end.ended)
	}
	r.status.EndAttempt(end.task, end.shown(), now)
	end.res.AgentEvents = nil // they are events of the run now, and not part of a result that is kept
	r.keepResult(end)
	e := end.ended
	if v1.IsRetryableEnd(e.State) && !e.NoRetry && r.core.Definition(e.Task).GetRetry().GetWhen() != "" {
		r.ask(question{task: e.Task, kind: asksRetry, end: &end})
		return
	}
	r.events = append(r.events, e)
}

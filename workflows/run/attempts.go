package run

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// attempts owns the attempts on nodes, from their dispatch to their end.
type attempts struct {
	*execution
	admitter attemptUnits
	ends     attemptEnds
	history  attemptHistory
	outbox   attemptOutbox
	placer   attemptNodes
	requests attemptRequests
	store    attemptStore

	byMember   map[int]*attempt
	dispatched int        // number of running Execute activities
	steerings  int        // pending requests to nodes about attempts
	detached   []*attempt // in the order of detaching
	others     []stopper  // for tasks without an attempt, in the order in which they are asked
}

// The attempts use these parts of other components.
type (
	attemptUnits interface {
		leave(u *unit)
		observe(task, n int, d time.Duration)
		track(u *unit)
		giveBack(a assignment, reason, text string)
	}
	attemptEnds interface {
		ended(end flight.End)
	}
	attemptHistory interface {
		isDetaching() bool
		detachRound() int
	}
	attemptOutbox interface {
		charge(bytes int)
		watch(future workflow.Future, onReady func(workflow.Future))
		startActivity(options workflow.ActivityOptions, name string, req any, written int) workflow.Future
		startActivityWith(ctx workflow.Context, options workflow.ActivityOptions, name string, req any, written int) workflow.Future
		after(d time.Duration, summary string, do func())
	}
	attemptNodes interface {
		nextAssignment() (assignment, bool)
		putBack(a assignment)
		release(i int, claim int32, outcome string)
	}
	attemptStore interface {
		outageWaiter
		mustCaller
	}
	attemptRequests interface {
		attemptRequest(a assignment, members []int) *v1.ExecuteRequest
		executeRequest(a assignment, members []int) (*v1.ExecuteRequest, error)
	}
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
	// startedAt is when it started, or nil if that is unknown or if its activity reports it.
	startedAt *timestamppb.Timestamp
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

// of returns the attempt of a task, or nil if there is none.
func (at *attempts) of(i int) *attempt { return at.byMember[i] }

// requestSent counts a request to a node about an attempt.
func (at *attempts) requestSent() { at.steerings++ }

// requestAnswered counts the answer to such a request.
func (at *attempts) requestAnswered() { at.steerings-- }

// hasRequests reports whether nodes still have to answer requests.
func (at *attempts) hasRequests() bool { return at.dispatched > 0 || at.steerings > 0 }

// dispatch starts the attempts of units that have been given a node. A unit without remaining members gives its placement back.
func (at *attempts) dispatch() {
	for at.dispatched < at.limits.InFlight {
		a, ok := at.placer.nextAssignment()
		if !ok {
			return
		}
		members := at.membersOf(a)
		if len(members) == 0 {
			at.placer.release(a.task, a.claim, "")
			at.admitter.leave(a.unit)
			continue
		}
		req, err := at.requests.executeRequest(a, members)
		if err != nil {
			at.placer.putBack(a)
			at.wake()
			return
		}
		if err := limits.CheckSize(req); err != nil {
			at.placer.release(a.task, a.claim, "")
			at.admitter.leave(a.unit)
			for _, m := range members {
				at.raise(dag.Ended{
					Task: m, Claim: at.core.Task(m).Claim, State: v1.TaskFailed, Reason: v1.ReasonPayload, Error: err.Error(), ExitCode: -1, NoRetry: true,
				})
			}
			continue
		}
		at.execute(a, members, req)
	}
}

// membersOf returns the members of an assignment that are still to run there.
func (at *attempts) membersOf(a assignment) []int {
	return slices.DeleteFunc(slices.Clone(a.unit.members), func(m int) bool {
		t := at.core.Task(m)
		return t.State != v1.TaskAssigned || m == a.task && t.Claim != a.claim
	})
}

// A stopper ends a task that is in flight.
type stopper interface {
	// stop returns false if the task is not in its care.
	stop(i int) bool
}

// stop ends the attempts of tasks. A task without an attempt is ended by the component that it waits for, unless its end is on
// the way.
func (at *attempts) stop(tasks []int) {
	for _, i := range tasks {
		if at.stopAttempt(i) {
			continue
		}
		for _, other := range at.others {
			if other.stop(i) {
				break
			}
		}
	}
}

// stopAttempt ends the attempt of a task. It returns false if there is none.
func (at *attempts) stopAttempt(i int) bool {
	a := at.byMember[i]
	if a == nil {
		return false
	}
	if a.stopped == nil {
		a.stopped = map[int]bool{}
	}
	a.stopped[i] = true
	switch {
	case a.isAway:
		at.endAway(a, v1.TaskCancelled)
	case !a.detached:
		at.outbox.charge(commandCharge)
		a.cancel()
	}
	return true
}

func (at *attempts) execute(a assignment, members []int, req *v1.ExecuteRequest) {
	att := &attempt{assignment: a, members: members}
	for _, m := range members {
		at.byMember[m] = att
	}
	at.send(att, req)
}

// send starts the activity that begins or reattaches an attempt and waits for it.
func (at *attempts) send(att *attempt, req *v1.ExecuteRequest) {
	ctx, cancel := workflow.WithCancel(at.ctx)
	name, priority := at.core.Name(att.members[0]), at.core.Definition(att.task).GetPriority()
	options := options.Execute(req, name, att.queue, priority, at.in.GetOptions())
	options.HeartbeatTimeout = at.heartbeatTimeout(att)
	options.ScheduleToStartTimeout = max(options.ScheduleToStartTimeout, att.leaseUntil.Sub(at.now()))
	att.cancel = cancel
	at.dispatched++
	at.outbox.watch(at.outbox.startActivityWith(ctx, options, names.ExecuteActivity, req, writtenIn(req)), func(f workflow.Future) {
		cancel()
		answer := attemptAnswer(at.ctx, f)
		left := att.leaseUntil.Sub(at.now()) // negative if the attempt was never detached
		switch at.facts(att).Next(answer, left > 0) {
		case flight.GoesAway:
			at.lose(att, answer)
		case flight.RunsOn:
			at.recordDetached(att, answer.Response)
		case flight.IsStopped:
			at.outbox.after(time.Millisecond, "stop the attempt", func() {
				at.dispatched--
				at.reattach(att)
			})
		case flight.Expires:
			at.outbox.after(left, "the attempt may run until its lease is over", func() { at.settle(att, answer) })
		case flight.IsLookedFor:
			at.awaitRecord(att, answer)
		default:
			at.endAttempt(att, answer)
		}
	})
}

// suspend records who has suspended task i, and why. An empty text means that it runs again.
func (at *attempts) suspend(i int, by string) {
	if at.records.Of(i).Suspended != by {
		at.records.At(i).Suspended = by
		at.status.RecordChanged(i)
	}
}

// facts returns what decides how an attempt ends.
func (at *attempts) facts(att *attempt) flight.Attempt {
	taskType := at.core.Definition(att.members[0]).GetType()
	a := flight.Attempt{
		Place:  flight.Place{Node: att.node, GPUs: att.gpus, NUMANode: att.numaNode},
		Remote: v1.IsRemote(taskType), Lasting: v1.Lasts(taskType), WasDetached: !att.leaseUntil.IsZero(), Excuse: att.excuse,
	}
	for _, i := range att.members {
		rec := at.core.Task(i)
		a.Members = append(a.Members, flight.Member{
			Task: i, Claim: rec.Claim, Attempt: rec.Attempt, Number: int32(at.core.Number(i)), Running: rec.State == v1.TaskRunning,
			Stopped: att.stopped[i], Retryable: at.core.IsRetryable(i), LostLeases: at.records.Of(i).LostLeases,
		})
	}
	return a
}

// endAttempt ends an attempt with the result of its activity.
func (at *attempts) endAttempt(att *attempt, answer flight.Answer) {
	if len(att.members) > 1 {
		answer.Progress = at.loadProgress(answer)
	}
	ends, outcome := at.facts(att).End(answer)
	at.dispatched--
	for _, m := range att.members {
		delete(at.byMember, m)
		at.suspend(m, "")
		at.status.EndSilence(m)
		at.status.EndAway(m)
	}
	at.placer.release(att.task, att.claim, outcome)
	at.admitter.leave(att.unit)
	if group := at.core.Group(att.members[0]); group >= 0 {
		if n, took := totalWork(ends); n > 0 {
			at.admitter.observe(group, n, took)
		}
	}
	for _, end := range ends {
		at.ends.ended(end)
	}
}

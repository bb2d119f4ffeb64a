package run

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
)

// The attempt of a long-lived type does not end with its activity. If its node goes silent, the attempt is away: its placement
// stays reserved, and the run does not place the task again.
//
//	attended ──no heartbeat──▶ away ──the node is back and has it──▶ attended
//	                            ├──the node is back without it──▶ what it has recorded, else lost
//	                            └──stopped, killed, cancelled──▶ ended at once; the node removes it when it is back
//
// The run waits for the node with one Steer activity, which asks the node for the attempt as soon as the node is back. To the
// core, an attempt that is away is running. The next execution waits for the node again.

// lasts reports whether an attempt is of a long-lived type.
func (r *run) lasts(att *attempt) bool { return v1.Lasts(r.core.Definition(att.members[0]).GetType()) }

// isAway reports whether an attempt whose activity has failed had started and may still run on its node.
func (r *run) isAway(att *attempt, err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok || !r.lasts(att) || len(att.stopped) > 0 {
		return false
	}
	return lastBeat(timeout).GetSpawned() || r.core.Task(att.members[0]).State == v1.TaskRunning
}

// lose marks an attempt as away and waits for its node. err is the time-out of its activity.
func (r *run) lose(att *attempt, err error) {
	i := att.members[0]
	timeout, _ := errors.AsType[*temporal.TimeoutError](err)
	beat := lastBeat(timeout)
	r.dispatched--
	att.isAway, att.detached, att.askedIn, att.leaseUntil = true, true, 0, time.Time{}
	r.detaching.detached = append(r.detaching.detached, att)
	if beat.GetStartedAt() != nil {
		r.status.SetStartedAt(i, beat.GetStartedAt())
	}
	r.events = append(r.events, dag.Running{Task: i, Claim: r.core.Task(i).Claim})
	r.status.SetAway(i, phrase.Silence(att.node, r.silentSince(att, beat)), workflow.Now(r.ctx))
	r.find(att)
}

// silentSince returns the time since which nothing has come from the node of an attempt. beat is its last heartbeat.
func (r *run) silentSince(att *attempt, beat *v1.ExecuteProgress) time.Time {
	since := workflow.Now(r.ctx).Add(-r.heartbeatTimeout(att))
	if sent := beat.GetSentAt(); sent != nil && sent.AsTime().Before(since) { // Temporal was unavailable when the time-out was due
		return sent.AsTime()
	}
	return since
}

// findPause is the wait before the next request to a node for an attempt after Temporal failed to deliver one.
const findPause = 10 * time.Second

// find asks the node of an attempt that is away for the attempt. The request lasts until the node is back.
func (r *run) find(att *attempt) {
	ctx, cancel := workflow.WithCancel(r.ctx)
	i := att.members[0]
	name := r.core.Name(i)
	att.cancel, att.isSought = cancel, true
	req := &v1.SteerRequest{RunId: r.id, Chain: r.chain, Task: name, Claim: r.core.Task(i).Claim, Action: actionFind}
	r.pending.Watch(r.startActivityWith(ctx, options.Find(att.node, name), names.SteerActivity, req, 0), func(f workflow.Future) {
		cancel()
		if r.attempts[i] != att || !att.isAway {
			return
		}
		var res v1.SteerResponse
		if err := f.Get(r.ctx, &res); err != nil {
			workflow.GetLogger(r.ctx).Warn("a node was not asked for an attempt", "node", att.node, "task", name, "error", err)
			r.after(findPause, "ask "+att.node+" for "+name+" again", func() { att.isSought = false; r.wake() })
			return
		}
		// A node without the attempt returns what it has recorded. Until the answer arrives the task stays lost.
		att.isAway, att.isSought = false, false
		if res.GetRefused() == "" {
			r.status.SetBack(i, workflow.Now(r.ctx))
		}
		r.wake() // to reattach it
	})
}

// seek asks for each attempt that is away and that no activity asks for yet.
func (r *run) seek() {
	for _, att := range r.detaching.detached {
		if att.isAway && !att.isSought {
			r.find(att)
		}
	}
}

// endAway ends an attempt that is away, without involving its node.
func (r *run) endAway(att *attempt, state string) {
	r.charge(commandCharge)
	att.cancel()
	att.isAway, att.detached = false, false
	r.detaching.detached = slices.DeleteFunc(r.detaching.detached, func(a *attempt) bool { return a == att })
	r.dispatched++ // over decrements it again
	i := att.members[0]
	r.over(att, &v1.ExecuteResponse{
		State: state, Reason: endAwayReason(state), Error: "node " + att.node + " was away, and removes what is left of it when it is back",
		Node: att.node, AssignedAt: r.status.AssignedAt(i), StartedAt: r.status.StartedAt(i),
	}, nil)
}

func endAwayReason(state string) string {
	if state == v1.TaskCancelled {
		return v1.ReasonCancelled
	}
	return ""
}

// mayStop returns why task i cannot be stopped, or nil if it can.
func (r *run) mayStop(i int) error { return r.maySteerLasting(i, actionStop) }

// mayRestart returns why the machine of task i cannot be restarted, or nil if it can.
func (r *run) mayRestart(i int) error { return r.maySteerLasting(i, actionRestart) }

// taskStopped records who has stopped task i.
func (r *run) taskStopped(i int, c *v1.TaskCommand) { r.status.Extras(i).SteeredBy = c.GetBy() }

func (r *run) taskRestarted(i int, c *v1.TaskCommand) { r.logTask(i, v1.EventRestarted, c) }

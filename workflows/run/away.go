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

// The attempt of a type that lasts does not end with its activity: it is away with its node, which keeps it. Its place stays
// reserved, and nothing places the task anew:
//
//	attended ──no heartbeat──▶ away ──the node is back and has it──▶ attended
//	                            ├──the node is back without it──▶ what it has recorded, else lost
//	                            └──stopped, killed, cancelled──▶ ended at once; the node removes it when it is back
//
// The run waits for the node by one activity Steer, which asks the node to find the attempt when the node is back. To the core, an
// attempt that is away runs. The next execution waits for the node again.

// lasts reports whether an attempt is of a type that lasts.
func (r *run) lasts(att *attempt) bool { return v1.Lasts(r.core.Definition(att.members[0]).GetType()) }

// isAway reports whether an attempt whose activity ended with an error has started and may still run on its node.
func (r *run) isAway(att *attempt, err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok || !r.lasts(att) || len(att.stopped) > 0 {
		return false
	}
	return lastBeat(timeout).GetSpawned() || r.core.Task(att.members[0]).State == v1.TaskRunning
}

// lose waits for the node of an attempt that is away. err is the time-out of its activity.
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

// silentSince returns since when nothing has come from the node of an attempt, given its last heartbeat.
func (r *run) silentSince(att *attempt, beat *v1.ExecuteProgress) time.Time {
	since := workflow.Now(r.ctx).Add(-r.heartbeatTimeout(att))
	if sent := beat.GetSentAt(); sent != nil && sent.AsTime().Before(since) { // Temporal was away when the time-out came
		return sent.AsTime()
	}
	return since
}

// findPause is the wait before a node is asked again for an attempt when Temporal could not ask it.
const findPause = 10 * time.Second

// find asks the node of an attempt that is away for it, which takes for as long as the node is away.
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
		// A node without it has what it has recorded. Until the answer is there the task stays lost.
		att.isAway, att.isSought = false, false
		if res.GetRefused() == "" {
			r.status.SetBack(i, workflow.Now(r.ctx))
		}
		r.wake() // to reattach it
	})
}

// seek has the nodes asked for the attempts that are away and were not asked for yet.
func (r *run) seek() {
	for _, att := range r.detaching.detached {
		if att.isAway && !att.isSought {
			r.find(att)
		}
	}
}

// endAway ends an attempt that is away, without its node.
func (r *run) endAway(att *attempt, state string) {
	r.charge(commandCharge)
	att.cancel()
	att.isAway, att.detached = false, false
	r.detaching.detached = slices.DeleteFunc(r.detaching.detached, func(a *attempt) bool { return a == att })
	r.dispatched++ // over takes it back
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

// mayStop says why task i cannot be stopped, or nil.
func (r *run) mayStop(i int) error { return r.maySteerLasting(i, actionStop) }

// mayRestart says why the machine of task i cannot be started again, or nil.
func (r *run) mayRestart(i int) error { return r.maySteerLasting(i, actionRestart) }

// taskStopped notes who has stopped task i.
func (r *run) taskStopped(i int, c *v1.TaskCommand) { r.status.Extras(i).SteeredBy = c.GetBy() }

func (r *run) taskRestarted(i int, c *v1.TaskCommand) { r.logTask(i, v1.EventRestarted, c) }

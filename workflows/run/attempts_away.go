package run

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
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

// lose marks an attempt as away and waits for its node.
func (at *attempts) lose(att *attempt, answer flight.Answer) {
	i, beat := att.members[0], answer.Beat
	at.dispatched--
	att.isAway, att.detached, att.askedIn, att.leaseUntil = true, true, 0, time.Time{}
	at.detached = append(at.detached, att)
	if beat.GetStartedAt() != nil {
		at.setStarted(att, beat.GetStartedAt())
	}
	at.raise(dag.Running{Task: i, Claim: at.core.Task(i).Claim})
	at.status.SetAway(i, phrase.Silence(att.node, at.silentSince(att, beat)), at.now())
	at.find(att)
}

// findPause is the wait before the next request to a node for an attempt after Temporal failed to deliver one.
const findPause = 10 * time.Second

// find asks the node of an away attempt whether it still has the attempt. The request lasts until the node is back.
func (at *attempts) find(att *attempt) {
	ctx, cancel := workflow.WithCancel(at.ctx)
	i := att.members[0]
	name := at.core.Name(i)
	att.cancel, att.isSought = cancel, true
	req := &v1.SteerRequest{RunId: at.id, Chain: at.chain, Task: name, Claim: at.core.Task(i).Claim, Action: actionFind}
	at.outbox.watch(at.outbox.startActivityWith(ctx, options.Find(att.node, name), names.SteerActivity, req, 0), func(f workflow.Future) {
		cancel()
		if at.byMember[i] != att || !att.isAway {
			return
		}
		var res v1.SteerResponse
		if err := f.Get(at.ctx, &res); err != nil {
			workflow.GetLogger(at.ctx).Warn("could not ask a node for an attempt", "node", att.node, "task", name, "error", err)
			at.outbox.after(findPause, "ask "+att.node+" for "+name+" again", func() { att.isSought = false; at.wake() })
			return
		}
		// A node without the attempt returns what it has recorded. Until the answer arrives the task stays lost.
		att.isAway, att.isSought = false, false
		if res.GetRefused() == "" {
			at.status.SetBack(i, at.now())
		}
		at.wake() // to reattach it
	})
}

// seek asks for each attempt that is away and that no activity asks for yet.
func (at *attempts) seek() {
	for _, att := range at.detached {
		if att.isAway && !att.isSought {
			at.find(att)
		}
	}
}

// endAway ends an attempt that is away, without involving its node.
func (at *attempts) endAway(att *attempt, state string) {
	at.outbox.charge(commandCharge)
	att.cancel()
	att.isAway, att.detached = false, false
	at.detached = slices.DeleteFunc(at.detached, func(a *attempt) bool { return a == att })
	at.dispatched++ // endAttempt decrements it again
	at.endAttempt(att, flight.Answer{Response: &v1.ExecuteResponse{
		State: state, Reason: endAwayReason(state), Error: "node " + att.node + " was away; it removes the rest of the attempt when it is back",
		Node: att.node, StartedAt: att.startedAt,
	}})
}

func endAwayReason(state string) string {
	if state == v1.TaskCancelled {
		return v1.ReasonCancelled
	}
	return ""
}

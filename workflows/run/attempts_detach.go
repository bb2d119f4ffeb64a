package run

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// detach asks nodes to detach their attempts, each once a round. While some attempts are being stopped, or did not detach when
// asked before, it asks only for those, because detaching the others would not help yet.
func (at *attempts) detach() {
	round := at.history.detachRound()
	for { // those not sent to their nodes yet
		a, ok := at.placer.nextAssignment()
		if !ok {
			break
		}
		at.admitter.giveBack(a, v1.ReasonContinued, "the run continues as new")
	}
	var attached, slow []*attempt
	//workflowcheck:ignore (sorted)
	for _, i := range slices.Sorted(maps.Keys(at.byMember)) {
		att := at.byMember[i]
		if att.members[0] != i || att.detached {
			continue
		}
		attached = append(attached, att)
		if att.stopped != nil || att.askedIn > 0 {
			slow = append(slow, att)
		}
	}
	if len(slow) > 0 {
		attached = slow
	}
	requests := map[string]*v1.DetachRequest{} // by node
	for _, att := range attached {
		if att.stopped != nil || att.askedIn == round {
			continue
		}
		att.askedIn = round
		if requests[att.node] == nil {
			requests[att.node] = &v1.DetachRequest{RunId: at.id, Chain: at.chain, Lease: durationpb.New(at.limits.DetachedLease)}
		}
		first := att.members[0]
		req := requests[att.node]
		req.Attempts = append(req.Attempts, &v1.ClaimRef{Task: at.core.Name(first), Claim: at.core.Task(first).Claim})
	}
	//workflowcheck:ignore (sorted)
	for _, node := range slices.Sorted(maps.Keys(requests)) {
		options := options.Detach(node, at.limits.DetachedLease/leaseShare)
		// The Execute activities of the attempts get the answer.
		at.outbox.startActivity(options, names.DetachActivity, requests[node], memberCharge*len(requests[node].GetAttempts()))
	}
}

// detachedLease returns how long a detached attempt may run unattended: at least the heartbeat time-out of the attempt. Its
// node applies the same rule.
func (at *attempts) detachedLease(att *attempt) time.Duration {
	return max(at.limits.DetachedLease, at.heartbeatTimeout(att))
}

// recordDetached records that an attempt continues without its activity.
func (at *attempts) recordDetached(att *attempt, res *v1.ExecuteResponse) {
	att.detached, att.askedIn, att.leaseUntil = true, 0, at.now().Add(at.detachedLease(att))
	at.detached = append(at.detached, att)
	at.dispatched--
	// The answer for a batch does not name the instance that runs.
	if i := att.members[0]; len(att.members) == 1 && res.GetStartedAt() != nil {
		at.setStarted(att, res.GetStartedAt())
		at.raise(dag.Running{Task: i, Claim: at.core.Task(i).Claim})
	}
	at.wake()
}

// setStarted records and shows when an attempt without an activity started.
func (at *attempts) setStarted(att *attempt, started *timestamppb.Timestamp) {
	att.startedAt = started
	at.status.SetStartedAt(att.members[0], started)
}

// reattachDetached reattaches the attempts that must be stopped and, unless the run is detaching, all others. A node that
// receives its request late detaches the attempts in a later round or in the next execution.
func (at *attempts) reattachDetached() {
	at.seek()
	for _, att := range slices.Clone(at.detached) {
		if !att.isAway && (!at.history.isDetaching() || att.stopped != nil) {
			at.reattach(att)
		}
	}
}

// reattach starts an activity that waits for an attempt on its node.
func (at *attempts) reattach(att *attempt) {
	att.detached = false
	at.detached = slices.DeleteFunc(at.detached, func(a *attempt) bool { return a == att })
	req := at.requests.attemptRequest(att.assignment, att.members)
	req.Reattach, req.Stop = true, att.stopped != nil
	at.send(att, req)
}

// saveTasks hands the detached attempts over to the next execution.
func (at *attempts) saveTasks(c *v1.RunState) {
	for _, att := range at.detached {
		h := handedOver(att, at.core.Name)
		c.Tasks[h.Members[0]].DetachedAttempt = h
	}
}

// handedOver returns the record of a detached attempt for the next execution.
func handedOver(att *attempt, name func(int) string) *v1.DetachedAttempt {
	h := &v1.DetachedAttempt{
		Lead: name(att.task), Claim: att.claim, Node: att.node, Queue: att.queue, Incarnation: att.incarnation,
		LeaseUntil: timestamppb.New(att.leaseUntil),
		Gpus:       att.gpus, NumaNode: att.numaNode,
	}
	for _, m := range att.members {
		h.Members = append(h.Members, name(m))
	}
	return h
}

// restoredAttempt returns the detached attempt of a handover record. lead and members are task indexes.
func restoredAttempt(h *v1.DetachedAttempt, lead int, members []int) *attempt {
	return &attempt{
		assignment: assignment{
			task: lead, claim: h.GetClaim(), node: h.GetNode(), queue: h.GetQueue(), incarnation: h.GetIncarnation(),
			gpus: h.GetGpus(), numaNode: h.NumaNode,
		},
		members: members, detached: true, leaseUntil: h.GetLeaseUntil().AsTime(),
	}
}

// restoreTask restores a detached attempt of the previous execution.
func (at *attempts) restoreTask(_ int, t *v1.TaskState) {
	h := t.GetDetachedAttempt()
	if h == nil {
		return
	}
	lead, _ := at.core.Index(h.GetLead())
	att := restoredAttempt(h, lead, nil)
	for _, name := range h.GetMembers() {
		i, _ := at.core.Index(name)
		att.members = append(att.members, i)
		at.byMember[i] = att
	}
	if len(att.members) > 1 {
		for _, m := range att.members {
			at.status.SetPlace(m, "", at.core.Number(att.members[0]))
		}
	}
	att.isAway, att.startedAt = t.GetAway() != "", t.GetTask().GetStartedAt()
	att.unit = &unit{lead: lead, members: slices.Clone(att.members), claim: att.claim, lock: at.lockOf(lead)}
	at.admitter.track(att.unit)
	at.detached = append(at.detached, att)
}

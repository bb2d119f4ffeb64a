package run

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// Past the soft limit of its history a run continues as new as soon as it is quiet, and admits tasks until then. Past the hard
// limit it stops admitting and has the nodes detach attempts that do not end soon. The next execution reattaches them:
//
//	admitting ──hard bound──▶ draining ──a moment──▶ detaching ──quiet──▶ continue as new ──▶ reattach
//	    ▲                                                │
//	    └── hard bound raised, reattach ── leaseShare ───┘
//
// No activity renews the lease of a detached attempt, which is long enough to reach the next execution. An attempt that cannot
// be detached does not affect the others: the detached ones are reattached while most of their lease is left, and the next
// round starts with the attempt that failed this one. At the last limit the run stops admitting, but the rounds continue.
//
// If a detached attempt is lost, its task ends only when the lease expires, because the attempt may run until then.

// leaseShare is the divisor of the detached lease that gives the time in which the run must continue as new.
const leaseShare = 6

// detaching is the progress of a run in detaching its attempts.
type detaching struct {
	bound    limits.HistorySize // past it, nothing is admitted
	begun    bool               // a round has begun: short attempts may still end
	round    int
	over     workflow.Future // ready when the time to continue as new is up; nil unless nodes are being asked
	detached []*attempt      // in the order of detaching
}

// isOverdue reports whether the time for detached attempts to wait for continue-as-new is up.
func (d *detaching) isOverdue() bool { return d.over != nil && d.over.IsReady() }

// limitHistory decides whether this round of the loop admits anything.
func (r *run) limitHistory() {
	d, size, was := &r.detaching, r.historySize(), r.draining
	full := size.Exceeds(d.bound)
	if full && !d.begun {
		d.begun = true
		wait := r.limits.DetachWait
		if size.Exceeds(r.limits.Last()) {
			wait = r.limits.DetachedLease // the remaining events are reserved for what runs
		}
		r.after(wait, "let short attempts end", r.beginDetaching)
	}
	r.draining = full || size.Exceeds(r.limits.Soft()) && r.isQuiet()
	if was && !r.draining {
		r.requestAll() // answers of placement were dropped while draining
	}
}

func (r *run) historySize() limits.HistorySize {
	info := workflow.GetInfo(r.root)
	return limits.HistorySize{Events: info.GetCurrentHistoryLength(), Bytes: info.GetCurrentHistorySize()}
}

// isQuiet reports whether the next execution can take over everything in flight.
func (r *run) isQuiet() bool {
	return r.dispatched == 0 && len(r.assignments) == 0 && r.openEnds == 0 && r.steerings == 0 && r.canDetach()
}

// beginDetaching starts a round of asking nodes. If the run has not continued as new in time, it admits again.
func (r *run) beginDetaching() {
	d := &r.detaching
	d.round++
	r.charge(commandCharge)
	d.over = workflow.NewTimerWithOptions(r.ctx, r.limits.DetachedLease/leaseShare, workflow.TimerOptions{Summary: "reattach what is detached"})
	r.pending.Watch(d.over, func(workflow.Future) {
		d.begun, d.over = false, nil
		d.bound = d.bound.Raised(r.historySize(), r.limits.Step(), r.limits.Last())
		r.wake()
	})
}

// detach asks nodes to detach their attempts, each once a round. While some attempts are being stopped, or did not detach when
// asked before, it asks only for those, because detaching the others would not help yet.
func (r *run) detach() {
	d := &r.detaching
	if d.over == nil || !r.canDetach() {
		return
	}
	for len(r.assignments) > 0 { // not sent to their nodes yet
		a := r.assignments[0]
		r.assignments = r.assignments[1:]
		r.giveBack(a, v1.ReasonContinued, "the run continues as new")
	}
	var attached, slow []*attempt
	//workflowcheck:ignore (sorted)
	for _, i := range slices.Sorted(maps.Keys(r.attempts)) {
		att := r.attempts[i]
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
		if att.stopped != nil || att.askedIn == d.round {
			continue
		}
		att.askedIn = d.round
		if requests[att.node] == nil {
			requests[att.node] = &v1.DetachRequest{RunId: r.id, Chain: r.chain, Lease: durationpb.New(r.limits.DetachedLease)}
		}
		first := att.members[0]
		req := requests[att.node]
		req.Attempts = append(req.Attempts, &v1.ClaimRef{Task: r.core.Name(first), Claim: r.core.Task(first).Claim})
	}
	//workflowcheck:ignore (sorted)
	for _, node := range slices.Sorted(maps.Keys(requests)) {
		options := options.Detach(node, r.limits.DetachedLease/leaseShare)
		// The Execute activities of the attempts get the answer.
		r.startActivity(options, names.DetachActivity, requests[node], memberCharge*len(requests[node].GetAttempts()))
	}
}

// detachedLease returns how long a detached attempt may run unattended: at least the heartbeat time-out of the attempt. Its
// node applies the same rule.
func (r *run) detachedLease(att *attempt) time.Duration {
	return max(r.limits.DetachedLease, r.heartbeatTimeout(att))
}

// heartbeatTimeout returns how long the node of an attempt may be silent.
func (r *run) heartbeatTimeout(att *attempt) time.Duration {
	own, all := definition.HeartbeatTimeout(r.core.Definition(att.task)), r.in.GetOptions().GetHeartbeatTimeout().AsDuration()
	return cmp.Or(own, all, options.HeartbeatTimeout)
}

// outlives reports whether an attempt runs, or may run, after its activity has ended. If it does, outlives arranges what
// follows.
func (r *run) outlives(att *attempt, res *v1.ExecuteResponse, err error) bool {
	left := att.leaseUntil.Sub(workflow.Now(r.ctx)) // negative if the attempt was never detached
	_, timedOut := errors.AsType[*temporal.TimeoutError](err)
	switch {
	case err == nil && res.GetState() == v1.AttemptDetached:
		r.detached(att, res)
	case left <= 0:
		return false
	case temporal.IsCanceledError(err): // cancelled before the node received the activity; the attempt must still be stopped
		r.after(time.Millisecond, "stop the attempt", func() {
			r.dispatched--
			r.reattach(att)
		})
	case timedOut || res.GetState() == v1.TaskLost:
		r.after(left, "the attempt may run until its lease is over", func() { r.settle(att, res, err) })
	default:
		return false
	}
	return true
}

// detached records that an attempt continues without its activity.
func (r *run) detached(att *attempt, res *v1.ExecuteResponse) {
	att.detached, att.askedIn, att.leaseUntil = true, 0, workflow.Now(r.ctx).Add(r.detachedLease(att))
	r.detaching.detached = append(r.detaching.detached, att)
	r.dispatched--
	// The answer for a batch does not name the instance that runs.
	if i := att.members[0]; len(att.members) == 1 && res.GetStartedAt() != nil {
		r.status.SetStartedAt(i, res.GetStartedAt())
		r.events = append(r.events, dag.Running{Task: i, Claim: r.core.Task(i).Claim})
	}
	r.wake()
}

// reattachDetached reattaches the attempts that must be stopped and, unless the run is detaching, all others. A node that
// receives its request late detaches the attempts in a later round or in the next execution.
func (r *run) reattachDetached() {
	r.seek()
	for _, att := range slices.Clone(r.detaching.detached) {
		if !att.isAway && (r.detaching.over == nil || att.stopped != nil) {
			r.reattach(att)
		}
	}
}

// reattach starts an activity that waits for an attempt on its node.
func (r *run) reattach(att *attempt) {
	att.detached = false
	r.detaching.detached = slices.DeleteFunc(r.detaching.detached, func(a *attempt) bool { return a == att })
	req := r.attemptRequest(att.assignment, att.members)
	req.Reattach, req.Stop = true, att.stopped != nil
	r.send(att, req)
}

// detachedAttempts hands the detached attempts over to the next execution.
func (r *run) detachedAttempts(c *v1.RunState) {
	for _, att := range r.detaching.detached {
		h := handedOver(att, r.core.Name)
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

// restoreAttempt adopts a detached attempt of the previous execution.
func (r *run) restoreAttempt(h *v1.DetachedAttempt) {
	if h == nil {
		return
	}
	lead, _ := r.core.Index(h.GetLead())
	att := restoredAttempt(h, lead, nil)
	for _, name := range h.GetMembers() {
		i, _ := r.core.Index(name)
		att.members = append(att.members, i)
		r.attempts[i] = att
	}
	if len(att.members) > 1 {
		for _, m := range att.members {
			r.status.SetPlace(m, "", r.core.Number(att.members[0]))
		}
	}
	att.isAway = r.status.Away(lead) != ""
	att.unit = &unit{lead: lead, members: slices.Clone(att.members), claim: att.claim, lock: r.lockOf(lead)}
	r.track(att.unit)
	r.detaching.detached = append(r.detaching.detached, att)
}

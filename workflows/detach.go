package workflows

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
	"switchyard/workflows/names"
)

// A run whose history is full goes on in another execution, and the attempts that
// take long go on meanwhile: the nodes are asked to detach them, the next execution
// adopts them.
//
//	history full ── a short wait ──> Detach ──> all are detached ──> continue as new ──> adopt
//	                                   ▲             │ some are not, for too long
//	                                   └── adopt ◀───┘
//
// Nobody beats for a detached attempt, so that it runs under a lease that is long
// enough for the way to the next execution. What was handed over and is lost may run
// until that lease is over: only then is the task told to be lost.

const (
	// stateDetached is how an activity ends whose attempt goes on without it.
	stateDetached = "detached"
	// shareOfLease is the part of the lease after which attempts are adopted again when
	// others could not be detached.
	shareOfLease = 6
	// firstAsk and lastAsk are the times between two Detach of the same node, doubling.
	firstAsk, lastAsk = 2 * time.Second, 10 * time.Minute
)

// handover is how far a run is with handing its attempts over.
type handover struct {
	begun bool
	pause time.Duration // before nodes are asked again
	asked int           // nodes that have not answered
	// detached are the attempts for which nobody waits, and since when the first of them.
	detached []*attempt
	since    time.Time
	// adopting says that this execution is to adopt them.
	adopting bool
}

// handOver begins to hand over what runs, if nothing else keeps the run in this execution.
func (r *run) handOver() {
	h := &r.handover
	if h.begun || r.inFlight == 0 || !r.canDetach() {
		return
	}
	h.begun, h.pause = true, firstAsk
	r.after(r.limits.HandoverWait, "let short attempts end", r.detach)
}

// detach asks the nodes to go on without this execution.
func (r *run) detach() {
	h := &r.handover
	if r.inFlight == 0 {
		return // nothing is left that was not detached
	}
	lease := r.limits.HandoverLease
	if len(h.detached) > 0 && workflow.Now(r.ctx).Sub(h.since) > lease/shareOfLease {
		h.adopting = true
		r.poke()
	} else {
		r.askNodes()
	}
	if h.asked == 0 {
		r.askAgain()
	}
}

func (r *run) askAgain() {
	h := &r.handover
	r.after(h.pause, "ask nodes again to detach attempts", r.detach)
	h.pause = min(2*h.pause, lastAsk)
}

// askNodes asks each node that has attempts for them.
func (r *run) askNodes() {
	type ask struct {
		node  string
		lease time.Duration
	}
	for len(r.assignments) > 0 { // what has not been sent to its node stays here
		a := r.assignments[0]
		r.assignments = r.assignments[1:]
		r.giveBack(a, reasonHandover, "the run goes on in another execution")
	}
	requests := map[ask]*v1.DetachRequest{}
	for _, i := range slices.Sorted(maps.Keys(r.attempts)) {
		att := r.attempts[i]
		if att.members[0] != i || att.stopped != nil || att.detached {
			continue
		}
		key := ask{att.node, r.leaseOf(att)}
		req := requests[key]
		if req == nil {
			req = &v1.DetachRequest{RunId: r.id, Lease: durationpb.New(key.lease)}
			requests[key] = req
		}
		req.Attempts = append(req.Attempts, &v1.ClaimRef{Task: r.core.Name(i), Claim: r.core.Task(i).Claim})
	}
	byNode := func(a, b ask) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.lease, b.lease)) }
	for _, key := range slices.SortedFunc(maps.Keys(requests), byNode) {
		r.handover.asked++
		ctx := workflow.WithActivityOptions(r.ctx, detachOptions(key.node))
		r.fly(workflow.ExecuteActivity(ctx, names.DetachActivity, requests[key]), func(f workflow.Future) {
			if err := f.Get(r.ctx, nil); err != nil {
				workflow.GetLogger(r.ctx).Debug("a node was not asked to detach its attempts", "node", key.node, "error", err)
			}
			// What counts is the answer of the attempts' own activities.
			if r.handover.asked--; r.handover.asked == 0 {
				r.askAgain()
			}
		})
	}
}

// leaseOf is how long an attempt may run with nobody who waits for it.
func (r *run) leaseOf(att *attempt) time.Duration {
	return max(r.limits.HandoverLease, definition.HeartbeatTimeout(r.core.Definition(att.task)))
}

// wasDetached takes it in if that is how the activity of an attempt has ended.
func (r *run) wasDetached(att *attempt, f workflow.Future) bool {
	h := &r.handover
	if !h.begun && att.leaseUntil.IsZero() {
		return false
	}
	var res v1.ExecuteResponse
	if f.Get(r.ctx, &res) != nil || res.GetState() != stateDetached {
		return false
	}
	now := workflow.Now(r.ctx)
	if len(h.detached) == 0 {
		h.since = now
	}
	h.detached = append(h.detached, att)
	att.detached, att.leaseUntil = true, now.Add(r.leaseOf(att))
	r.inFlight--
	// A node may have heard late of what the execution before wanted.
	h.adopting = h.adopting || !r.draining
	// Of a batch it is not told which of its instances runs.
	if i := att.members[0]; len(att.members) == 1 && res.GetStartedAt() != nil {
		r.board.entries[i].startedAt = res.GetStartedAt()
		r.events = append(r.events, dag.Running{Task: i, Claim: r.core.Task(i).Claim})
	}
	r.poke()
	return true
}

// uncertain says for how long an attempt may still run although its activity has ended:
// it was handed over, and nobody knows whether its node has heard of the one that has
// adopted it.
func (r *run) uncertain(att *attempt, f workflow.Future) time.Duration {
	if att.leaseUntil.IsZero() {
		return 0
	}
	var res v1.ExecuteResponse
	err := f.Get(r.ctx, &res)
	if _, timedOut := errors.AsType[*temporal.TimeoutError](err); !timedOut && !temporal.IsCanceledError(err) && res.GetState() != dag.StateLost {
		return 0
	}
	return att.leaseUntil.Sub(workflow.Now(r.ctx))
}

// unheardOf goes on with an attempt that may still run. One whose activity was
// cancelled before its node had heard of it is adopted to be stopped.
func (r *run) unheardOf(att *attempt, f workflow.Future, left time.Duration) {
	if temporal.IsCanceledError(f.Get(r.ctx, nil)) {
		r.after(time.Millisecond, "have the attempt stopped", func() { r.adoptAttempt(att) })
		return
	}
	r.after(left, "an attempt may run until its lease is over", func() { r.over(att, f) })
}

// adoptAll waits again for the attempts that nobody waits for.
func (r *run) adoptAll() {
	h := &r.handover
	if !h.adopting {
		return
	}
	adopted := h.detached
	h.adopting, h.detached = false, nil
	for _, att := range adopted {
		r.adoptAttempt(att)
	}
}

func (r *run) adoptAttempt(att *attempt) {
	if !att.detached { // it was cancelled before it was adopted
		r.inFlight--
	}
	att.detached = false
	req := r.adoptRequest(att)
	r.charge(activityCharge + writtenIn(req))
	r.send(att, req)
}

// adoptRequest asks a node for an attempt that it has.
func (r *run) adoptRequest(att *attempt) *v1.ExecuteRequest {
	first := att.members[0]
	rec, def := r.core.Task(first), r.core.Definition(first)
	req := &v1.ExecuteRequest{
		RunId: r.id, Workflow: r.in.GetDefinition().GetName(), Generation: r.in.GetGeneration(),
		Task: r.graph.Name(r.board.task(first)), Attempt: rec.Attempt, Claim: rec.Claim, Node: att.node,
		Type: def.GetType(), InlineLimit: r.inlineLimit(), Incarnation: att.incarnation,
		Unheard: r.unheardWith(first), Adopt: true, Stop: att.stopped != nil,
	}
	if t := definition.Timeout(def); t > 0 {
		req.Timeout = durationpb.New(t)
	}
	if r.core.Group(first) < 0 {
		return req
	}
	number := int32(r.core.Number(first))
	req.Index = &number
	if len(att.members) == 1 {
		return req
	}
	for _, m := range att.members {
		rec := r.core.Task(m)
		req.Batch = append(req.Batch, &v1.Member{
			Index: int32(r.core.Number(m)), Attempt: rec.Attempt, Claim: rec.Claim, Unheard: r.unheardWith(m),
		})
	}
	return req
}

// unheardWith are the attempts of task i whose end nobody heard of, the newest included.
func (r *run) unheardWith(i int) []int32 {
	unheard, attempt := r.board.unheard(i), r.core.Task(i).Attempt
	if slices.Contains(unheard, attempt) {
		return unheard
	}
	return append(slices.Clip(unheard), attempt)
}

// carryAttempts leaves the detached attempts to the next execution.
func (r *run) carryAttempts(c *v1.RunCarry) {
	for _, att := range r.handover.detached {
		h := &v1.HandedOver{
			Lead: r.core.Name(att.task), Claim: att.claim, Node: att.node, Queue: att.queue, Incarnation: att.incarnation,
			Began: timestamppb.New(att.began), LeaseUntil: timestamppb.New(att.leaseUntil),
		}
		for _, m := range att.members {
			h.Members = append(h.Members, r.core.Name(m))
		}
		c.Tasks[h.Members[0]].HandedOver = h
	}
}

// restoreAttempt takes an attempt from the execution before, to be adopted.
func (r *run) restoreAttempt(h *v1.HandedOver) {
	if h == nil {
		return
	}
	lead, _ := r.core.Index(h.GetLead())
	att := &attempt{
		assignment: assignment{task: lead, claim: h.GetClaim(), node: h.GetNode(), queue: h.GetQueue(), incarnation: h.GetIncarnation()},
		detached:   true, began: h.GetBegan().AsTime(), leaseUntil: h.GetLeaseUntil().AsTime(),
	}
	for _, name := range h.GetMembers() {
		i, _ := r.core.Index(name)
		att.members = append(att.members, i)
		r.attempts[i] = att
		r.ready(i, workflow.Now(r.ctx))
	}
	if len(att.members) > 1 {
		for _, m := range att.members {
			r.board.place(m, "", r.core.Number(att.members[0]))
		}
	}
	att.unit = &unit{lead: lead, members: slices.Clone(att.members), claim: att.claim, lock: lockOf(r.core.Definition(lead))}
	r.adopt(att.unit)
	r.handover.detached, r.handover.adopting = append(r.handover.detached, att), true
}

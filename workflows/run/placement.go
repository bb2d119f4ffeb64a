package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// placement is the run's view of the placement queue in the control process. The queue holds copies of the requests; the run is
// the source of truth and sends them again to a queue that has lost them.
type placement struct {
	epoch        string
	acknowledged int64 // number of the newest answer of this epoch
	requests     []int // leads of units to request in the next call
	released     []*v1.ClaimRef
	waiting      []int32 // by lead: the claim that is queued, or 0
	count        int     // number of queued claims
	awaiting     bool    // an AwaitPlacement is running
	pausing      bool    // placement could not answer; the next call follows soon
}

// assignment is a placement that a unit has been given on a node. Task and claim are those of its lead.
type assignment struct {
	task        int
	claim       int32
	unit        *unit
	node, queue string
	incarnation string
	gpus        []int32
	numaNode    *int32
}

// request adds a unit to the next placement call.
func (r *run) request(u *unit) {
	p := &r.placement
	for len(p.waiting) <= u.lead {
		p.waiting = append(p.waiting, 0)
	}
	if p.waiting[u.lead] == 0 {
		p.count++
	}
	p.waiting[u.lead] = u.claim
	p.requests = append(p.requests, u.lead)
}

// unrequest withdraws the request of a unit, if there is one.
func (r *run) unrequest(u *unit) {
	if r.waitsForNode(u.lead, u.claim) {
		r.clearWaiting(u.lead)
		r.release(u.lead, u.claim, "")
	}
}

// waitsForNode reports whether a claim is in the placement queue.
func (r *run) waitsForNode(lead int, claim int32) bool {
	return lead < len(r.placement.waiting) && claim != 0 && r.placement.waiting[lead] == claim
}

// clearWaiting marks a lead as no longer queued.
func (r *run) clearWaiting(lead int) {
	r.placement.waiting[lead] = 0
	r.placement.count--
}

// release gives back the placement of a claim. outcome is what the dispatch implies about the node, or "" if it never reached
// the node.
func (r *run) release(i int, claim int32, outcome string) {
	r.placement.released = append(r.placement.released, &v1.ClaimRef{Task: r.core.Name(i), Claim: claim, Outcome: outcome})
}

// place updates the placement queue, in one call a round, and applies its answer.
func (r *run) place() {
	p := &r.placement
	asked := len(p.requests)
	asking := asked > 0 && !r.draining
	if p.pausing || !asking && len(p.released) == 0 {
		return
	}
	req := &v1.PlaceRequest{RunId: r.self, Chain: r.chain, Released: p.released, Epoch: p.epoch, Acknowledged: p.acknowledged}
	for _, i := range p.requests {
		if p.waiting[i] != 0 && asking {
			req.Requests = append(req.Requests, r.taskRequest(i))
		}
	}
	r.charge(commandCharge * len(req.Requests))
	var res v1.PlaceResponse
	if err := r.try("ask for nodes", names.PlaceActivity, &res, req); err != nil {
		p.pausing = true
		r.after(options.PlacementPause, "ask placement again", func() { p.pausing = false; r.place() })
		return
	}
	p.released = p.released[len(req.Released):] // releases and requests may have been added during the call
	if r.draining {
		return // the next execution requests everything again and gets new answers
	}
	p.requests = append([]int(nil), p.requests[asked:]...)
	if p.epoch != "" && p.epoch != res.GetEpoch() {
		// A different queue answered, so everything that the old one held is requested again.
		r.requestAll()
	}
	p.epoch, p.acknowledged = res.GetEpoch(), res.GetNumber()
	r.charge(commandCharge * max(0, len(res.GetAssigned())+len(res.GetWaiting())-len(req.Requests))) // already charged with the request
	r.placed(&res)
	if len(p.requests) > 0 {
		r.place()
	}
	r.await()
}

// requestAll adds everything that waits for a node to the next call.
func (r *run) requestAll() {
	p := &r.placement
	p.requests = p.requests[:0]
	for i, claim := range p.waiting {
		if claim != 0 {
			p.requests = append(p.requests, i)
		}
	}
}

// await waits in the background for news from the placement queue.
func (r *run) await() {
	p := &r.placement
	if p.count == 0 || p.awaiting || p.pausing || r.draining {
		return
	}
	p.awaiting = true
	future := r.startActivity(options.AwaitPlacement(), names.AwaitPlacementActivity, &v1.AwaitPlacementRequest{RunId: r.self, Epoch: p.epoch}, 0)
	r.pending.Watch(future, func(f workflow.Future) {
		p.awaiting = false
		if r.draining {
			return
		}
		var res v1.PlaceResponse
		if err := f.Get(r.ctx, &res); err != nil {
			workflow.GetLogger(r.ctx).Warn("waiting for a node failed", "error", err)
			res.Resync = true
		}
		r.placed(&res)
		if res.GetResync() {
			r.requestAll()
			r.place()
		}
		r.await()
	})
}

// placed applies an answer of the placement queue.
func (r *run) placed(res *v1.PlaceResponse) {
	for _, a := range res.GetAssigned() {
		i, ok := r.core.Index(a.GetTask())
		if !ok || !r.waitsForNode(i, a.GetClaim()) {
			continue // withdrawn, or reported twice
		}
		r.clearWaiting(i)
		u := r.units[i]
		r.admission.Placed(i)
		r.attributes.wanted.AddNode(a.GetNode())
		r.assignments = append(r.assignments, assignment{
			task: i, claim: a.GetClaim(), unit: u, node: a.GetNode(), queue: a.GetQueue(),
			incarnation: a.GetIncarnation(), gpus: a.GetGpus(), numaNode: a.NumaNode,
		})
		lead := -1
		if len(u.members) > 1 {
			lead = r.core.Number(u.members[0])
		}
		there := eventlog.PlaceFacts(a)
		for _, m := range u.members {
			r.status.SetPlace(m, a.GetWhy(), lead, there...)
			r.events = append(r.events, dag.Placed{Task: m, Claim: r.core.Task(m).Claim, Node: a.GetNode()})
		}
	}
	for _, w := range res.GetWaiting() {
		i, ok := r.core.Index(w.GetTask())
		if !ok || !r.waitsForNode(i, w.GetClaim()) {
			continue
		}
		if !w.GetGivenUp() {
			for _, m := range r.units[i].members {
				r.status.SetWaitReason(m, w.GetReason())
			}
			continue
		}
		r.clearWaiting(i)
		u := r.units[i]
		r.leave(u)
		for _, m := range u.members {
			r.events = append(r.events, dag.GaveUp{Task: m, Claim: r.core.Task(m).Claim, Reason: definition.PlacementReason(r.core.Definition(m)), Error: w.GetReason()})
		}
	}
}

func (r *run) taskRequest(i int) *v1.TaskRequest {
	task := r.core.Definition(i)
	req := &v1.TaskRequest{
		Task:             r.core.Name(i),
		Claim:            r.placement.waiting[i],
		Type:             task.GetType(),
		Constraints:      definition.Constraints(task),
		Resources:        task.GetResources(),
		Container:        definition.ContainerNeeds(task),
		Priority:         task.GetPriority(),
		QueuedAt:         timestamppb.New(r.status.QueuedAt(i)),
		PlacementTimeout: definition.PlacementTimeout(task, r.in.GetOptions().GetPlacementTimeout()),
		Refusals:         r.status.Refusals(i),
	}
	if node := r.status.AvoidedNode(i); node != "" {
		req.AvoidNodes = []string{node}
	}
	return req
}

package run

import (
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// placer is the run's side of the placement queue in the control process: it owns the requests, the placements that no attempt
// uses yet, and those to be released. The queue holds copies of the requests; the placer is the source of truth and sends them
// again to a queue that has lost them.
type placer struct {
	*execution
	admitter placerUnits
	outbox   placerOutbox
	store    placerStore
	view     nodeList

	epoch        string
	acknowledged int64 // number of the newest answer of this epoch
	requests     []int // leads of units to request in the next call
	released     []*v1.ClaimRef
	waiting      []int32 // by lead: the claim that is queued, or 0
	count        int     // number of queued claims
	awaiting     bool    // an AwaitPlacement is running
	pausing      bool    // placement could not answer; the next call follows soon
	assignments  []assignment
}

// The placer uses these parts of other components.
type (
	placerUnits interface {
		leave(u *unit)
		removeMember(u *unit, i int)
		unitOf(i int) *unit
		placed(lead int)
	}
	placerOutbox interface {
		charge(bytes int)
		watch(future workflow.Future, onReady func(workflow.Future))
		startActivity(options workflow.ActivityOptions, name string, req any, written int) workflow.Future
		after(d time.Duration, summary string, do func())
	}
	placerStore interface {
		try(summary, activity string, result any, args ...any) error
	}
)

// request adds a unit to the next placement call.
func (p *placer) request(u *unit) {
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
func (p *placer) unrequest(u *unit) {
	if p.waitsForNode(u.lead, u.claim) {
		p.clearWaiting(u.lead)
		p.release(u.lead, u.claim, "")
	}
}

// waitsForNode reports whether a claim is in the placement queue.
func (p *placer) waitsForNode(lead int, claim int32) bool {
	return lead < len(p.waiting) && claim != 0 && p.waiting[lead] == claim
}

// clearWaiting marks a lead as no longer queued.
func (p *placer) clearWaiting(lead int) {
	p.waiting[lead] = 0
	p.count--
}

// release gives back the placement of a claim. outcome is what the dispatch implies about the node, or "" if it never reached
// the node.
func (p *placer) release(i int, claim int32, outcome string) {
	p.released = append(p.released, &v1.ClaimRef{Task: p.core.Name(i), Claim: claim, Outcome: outcome})
}

// place updates the placement queue, in one call a round, and applies its answer.
func (p *placer) place() {
	asked := len(p.requests)
	asking := asked > 0 && !p.draining
	if p.pausing || !asking && len(p.released) == 0 {
		return
	}
	req := &v1.PlaceRequest{RunId: p.self, Chain: p.chain, Released: p.released, Epoch: p.epoch, Acknowledged: p.acknowledged}
	for _, i := range p.requests {
		if p.waiting[i] != 0 && asking {
			req.Requests = append(req.Requests, p.taskRequest(i))
		}
	}
	p.outbox.charge(commandCharge * len(req.Requests))
	var res v1.PlaceResponse
	if err := p.store.try("ask for nodes", names.PlaceActivity, &res, req); err != nil {
		p.pausing = true
		p.outbox.after(options.PlacementPause, "ask placement again", func() { p.pausing = false; p.place() })
		return
	}
	p.released = p.released[len(req.Released):] // releases and requests may have been added during the call
	if p.draining {
		return // the next execution requests everything again and gets new answers
	}
	p.requests = append([]int(nil), p.requests[asked:]...)
	if p.epoch != "" && p.epoch != res.GetEpoch() {
		// A different queue answered, so everything that the old one held is requested again.
		p.requestAll()
	}
	p.epoch, p.acknowledged = res.GetEpoch(), res.GetNumber()
	p.outbox.charge(commandCharge * max(0, len(res.GetAssigned())+len(res.GetWaiting())-len(req.Requests))) // already charged with the request
	p.applyAnswer(&res)
	if len(p.requests) > 0 {
		p.place()
	}
	p.await()
}

// requestAll adds everything that waits for a node to the next call.
func (p *placer) requestAll() {
	p.requests = p.requests[:0]
	for i, claim := range p.waiting {
		if claim != 0 {
			p.requests = append(p.requests, i)
		}
	}
}

// await waits in the background for news from the placement queue.
func (p *placer) await() {
	if p.count == 0 || p.awaiting || p.pausing || p.draining {
		return
	}
	p.awaiting = true
	future := p.outbox.startActivity(options.AwaitPlacement(), names.AwaitPlacementActivity, &v1.AwaitPlacementRequest{RunId: p.self, Epoch: p.epoch}, 0)
	p.outbox.watch(future, func(f workflow.Future) {
		p.awaiting = false
		if p.draining {
			return
		}
		var res v1.PlaceResponse
		if err := f.Get(p.ctx, &res); err != nil {
			workflow.GetLogger(p.ctx).Warn("waiting for a node failed", "error", err)
			res.Resync = true
		}
		p.applyAnswer(&res)
		if res.GetResync() {
			p.requestAll()
			p.place()
		}
		p.await()
	})
}

func (p *placer) taskRequest(i int) *v1.TaskRequest {
	task := p.core.Definition(i)
	req := &v1.TaskRequest{
		Task:             p.core.Name(i),
		Claim:            p.waiting[i],
		Type:             task.GetType(),
		Constraints:      definition.Constraints(task),
		Resources:        task.GetResources(),
		Container:        definition.ContainerNeeds(task),
		Needs:            definition.TaskNeeds(task),
		Priority:         task.GetPriority(),
		QueuedAt:         timestamppb.New(p.records.Of(i).QueuedAt),
		PlacementTimeout: definition.PlacementTimeout(task, p.in.GetOptions().GetPlacementTimeout()),
		Refusals:         p.records.Of(i).Refusals,
	}
	if node := p.records.Of(i).Avoid; node != "" {
		req.AvoidNodes = []string{node}
	}
	return req
}

// owesReleases reports whether placements are still to be released once placement answers again.
func (p *placer) owesReleases() bool { return p.pausing && len(p.released) > 0 }

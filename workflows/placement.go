package workflows

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

// placement is what a run knows of the placement queue in the control process.
// The queue holds the requests; the run holds the truth, and tells it again to
// a queue that has lost it.
type placement struct {
	epoch    string
	requests []int // tasks to ask for in the next call
	released []*v1.ClaimRef
	waiting  []int32 // by task: the claim that waits in the queue, 0 for none
	count    int     // claims that wait
	awaiting bool    // an AwaitPlacement is under way
	pausing  bool    // placement could not answer and is asked again soon
}

// assignment is a place on a node that a task has been given.
type assignment struct {
	task        int
	claim       int32
	node, queue string
	incarnation string
	gpus        []int32
	numaNode    *int32
}

// request has the task's newest claim asked for in the next call.
func (r *run) request(i int) {
	p := &r.placement
	if p.waiting[i] == 0 {
		p.count++
	}
	p.waiting[i] = r.core.Task(i).Claim
	p.requests = append(p.requests, i)
}

// withdraw takes back a request that is not wanted any more.
func (r *run) withdraw(i int) {
	p := &r.placement
	if claim := p.waiting[i]; claim != 0 {
		p.waiting[i] = 0
		p.count--
		r.release(i, claim, "")
	}
}

// release gives back the place of a claim, with what the dispatch says of its
// node; empty: it never got there.
func (r *run) release(i int, claim int32, outcome string) {
	r.placement.released = append(r.placement.released, &v1.ClaimRef{Task: r.graph.Name(i), Claim: claim, Outcome: outcome})
}

// place brings the placement queue up to date, in one call a round, and takes
// what it has for the run.
func (r *run) place() {
	p := &r.placement
	asking := len(p.requests) > 0 && !r.draining
	if p.pausing || !asking && len(p.released) == 0 {
		return
	}
	req := &v1.PlaceRequest{RunId: r.id, Released: p.released}
	for _, i := range p.requests {
		if p.waiting[i] != 0 && asking {
			req.Requests = append(req.Requests, r.taskRequest(i))
		}
	}
	ctx := workflow.WithLocalActivityOptions(r.ctx, localOptions("place"))
	var res v1.PlaceResponse
	if err := workflow.ExecuteLocalActivity(ctx, names.PlaceActivity, req).Get(ctx, &res); err != nil {
		workflow.GetLogger(r.ctx).Warn("placement did not answer", "error", err)
		p.pausing = true
		r.after(placementPause, "ask placement again", func() { p.pausing = false; r.place() })
		return
	}
	p.released = nil
	if r.draining {
		return // the next execution asks again for all that waits, and is told again
	}
	p.requests = nil
	if p.epoch != "" && p.epoch != res.GetEpoch() {
		// Another queue answered; what the old one held is asked for again.
		r.requestAll()
	}
	p.epoch = res.GetEpoch()
	r.placed(&res)
	if len(p.requests) > 0 {
		r.place()
	}
	r.await()
}

// requestAll has everything that waits asked for in the next call.
func (r *run) requestAll() {
	p := &r.placement
	p.requests = p.requests[:0]
	for i, claim := range p.waiting {
		if claim != 0 {
			p.requests = append(p.requests, i)
		}
	}
}

// await has the run told when the placement queue has something new for it.
func (r *run) await() {
	p := &r.placement
	if p.count == 0 || p.awaiting || p.pausing || r.draining {
		return
	}
	p.awaiting = true
	ctx := workflow.WithActivityOptions(r.ctx, awaitOptions())
	future := workflow.ExecuteActivity(ctx, names.AwaitPlacementActivity,
		&v1.AwaitPlacementRequest{RunId: r.id, Epoch: p.epoch})
	r.fly(future, func(f workflow.Future) {
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

// placed takes an answer of the placement queue.
func (r *run) placed(res *v1.PlaceResponse) {
	p := &r.placement
	for _, a := range res.GetAssigned() {
		i, ok := r.graph.Index(a.GetTask())
		if !ok || p.waiting[i] != a.GetClaim() {
			continue // withdrawn, or told twice
		}
		p.waiting[i] = 0
		p.count--
		r.assignments = append(r.assignments, assignment{
			task: i, claim: a.GetClaim(), node: a.GetNode(), queue: a.GetQueue(),
			incarnation: a.GetIncarnation(), gpus: a.GetGpus(), numaNode: a.NumaNode,
		})
		r.board.place(i, a.GetWhy())
		r.events = append(r.events, dag.Placed{Task: i, Claim: a.GetClaim(), Node: a.GetNode()})
	}
	for _, w := range res.GetWaiting() {
		i, ok := r.graph.Index(w.GetTask())
		if !ok || p.waiting[i] != w.GetClaim() {
			continue
		}
		if !w.GetGivenUp() {
			r.board.wait(i, w.GetReason())
			continue
		}
		p.waiting[i] = 0
		p.count--
		r.events = append(r.events, dag.GaveUp{Task: i, Claim: w.GetClaim(), Error: w.GetReason()})
	}
}

func (r *run) taskRequest(i int) *v1.TaskRequest {
	task := r.graph.Definition(i)
	req := &v1.TaskRequest{
		Task:             r.graph.Name(i),
		Claim:            r.placement.waiting[i],
		Type:             task.GetType(),
		Constraints:      task.GetConstraints(),
		Resources:        task.GetResources(),
		Priority:         task.GetPriority(),
		QueuedAt:         timestamppb.New(r.board.queuedAt(i)),
		PlacementTimeout: r.in.GetOptions().GetPlacementTimeout(),
		Refusals:         r.board.refusals(i),
	}
	if node := r.board.avoid(i); node != "" {
		req.AvoidNodes = []string{node}
	}
	return req
}

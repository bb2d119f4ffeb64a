package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/grants"
	"switchyard/activities/heartbeat"
	"switchyard/activities/placement"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// gather is how long AwaitPlacement waits after the first news, so that it reports simultaneous news together.
	gather = 5 * time.Millisecond
	// awaitBeat is the time between the heartbeats of AwaitPlacement. It is well below the 5 s after which a run turns to
	// the next leader.
	awaitBeat = 2 * time.Second
	// maxReasons bounds the reasons for waiting in one answer, which all become part of the run's history.
	maxReasons = 50
	// defaultSweepInterval is the time between searches for runs that ended without notice.
	defaultSweepInterval = 15 * time.Second
)

// Placement is the placement queue of the control process with the activities that give runs access to it. It is safe for
// concurrent use.
type Placement struct {
	client client.Client
	logger *slog.Logger
	grants *grants.Grants // nil if nodes need no grants
	sweeps time.Duration
	valid  func() bool

	mu       sync.Mutex
	queue    *placement.Queue
	waiters  map[string]*waiter   // by run
	reported map[string]*reported // by run
	chains   map[string][]string  // the chains that have made requests, by run, the newest last
	changed  chan struct{}        // has room for one signal: deadlines may have moved
}

// waiter receives the news of a run. It belongs to the newest AwaitPlacement of the execution that made the last request.
// A call for an older execution, or one that Temporal has timed out, would consume news that is never read.
type waiter struct {
	execution string        // the Temporal run id
	news      chan struct{} // has room for one wake-up
}

// PlacementOptions configures a Placement.
type PlacementOptions struct {
	// SweepInterval is the time between searches for runs that ended without notice. 0 means 15 s.
	SweepInterval time.Duration
	// Valid reports whether this is still the placement queue of the fleet. A nil Valid means always.
	Valid func() bool
	// Grants stores a grant for each assignment before its node can learn of it. If nil, nodes need no grants.
	Grants *grants.Grants
	Logger *slog.Logger
}

// errNotLeader is the error of a placement queue that no longer belongs to the fleet.
var errNotLeader = errors.New("this process does not own the placement queue")

// NewPlacement returns a Placement that owns a queue.
func NewPlacement(c client.Client, queue *placement.Queue, o PlacementOptions) *Placement {
	if o.Valid == nil {
		o.Valid = func() bool { return true }
	}
	return &Placement{
		client:   c,
		valid:    o.Valid,
		logger:   o.Logger,
		grants:   o.Grants,
		sweeps:   cmp.Or(o.SweepInterval, defaultSweepInterval),
		queue:    queue,
		waiters:  map[string]*waiter{},
		reported: map[string]*reported{},
		chains:   map[string][]string{},
		changed:  make(chan struct{}, 1),
	}
}

// Place applies the requests and releases of a run, and returns the assignments of the run so far. It is a local
// activity.
func (p *Placement) Place(ctx context.Context, req *historyv1.PlaceRequest) (*historyv1.PlaceResponse, error) {
	res, err := p.answer(activity.GetInfo(ctx).WorkflowExecution.RunID, req)
	if err != nil {
		return nil, err
	}
	// If the grants fail, the run repeats its request and gets this answer again, because it has not acknowledged it.
	return res, p.grant(ctx, req.GetRunId(), req.GetChain(), res.GetAssigned())
}

func (p *Placement) answer(execution string, req *historyv1.PlaceRequest) (*historyv1.PlaceResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.valid() {
		return nil, errNotLeader
	}
	if !p.admitChain(req.GetRunId(), req.GetChain()) {
		return &historyv1.PlaceResponse{Epoch: p.queue.Epoch()}, nil
	}
	if w := p.waiters[req.GetRunId()]; w == nil || w.execution != execution {
		p.replaceWaiter(req.GetRunId(), execution)
	}
	p.queue.Release(req.GetRunId(), req.GetReleased())
	p.queue.Request(placement.Run{ID: req.GetRunId(), Owner: req.GetOwner(), Workflow: req.GetWorkflow()}, req.GetRequests())
	if !p.queue.HasRun(req.GetRunId()) {
		delete(p.chains, req.GetRunId()) // sweep does not see a run that waits for nothing
	}
	p.queue.Repeat(req.GetRunId(), p.unacknowledged(req))
	p.pass()
	res := p.news(req.GetRunId())
	p.recordAnswer(req.GetRunId(), res)
	return res, nil
}

// admitChain reports whether a request comes from the newest chain of a run. A new chain replaces the previous one,
// because the claims of a run that was reset count from the reset point again. mu is held.
func (p *Placement) admitChain(run, chain string) bool {
	all := p.chains[run]
	i := slices.Index(all, chain)
	if i < 0 && len(all) > 0 {
		p.forget(run)
	}
	if i < 0 {
		p.chains[run] = append(all, chain)
	}
	return i < 0 || i == len(all)-1
}

// AwaitPlacement returns when the queue has news for a run. It asks the run to repeat all requests if the run made them
// to another queue, if an earlier answer may have been lost, or if the process stops.
func (p *Placement) AwaitPlacement(ctx context.Context, req *historyv1.AwaitPlacementRequest) (*historyv1.PlaceResponse, error) {
	info := activity.GetInfo(ctx)
	lost := &historyv1.PlaceResponse{Epoch: p.queue.Epoch(), Resync: true}
	if info.Attempt > 1 || req.GetEpoch() != p.queue.Epoch() {
		return lost, nil
	}
	w := p.await(req.GetRunId(), info.WorkflowExecution.RunID)
	beat := time.NewTicker(awaitBeat)
	defer beat.Stop()
	for {
		res, chain, current := p.newsFor(w, req.GetRunId())
		if err := p.grant(ctx, req.GetRunId(), chain, res.GetAssigned()); err != nil {
			p.logger.Warn("a run waits for the grants of its nodes", "run", req.GetRunId(), "error", err)
			return lost, nil
		}
		if !current || len(res.GetAssigned()) > 0 || len(res.GetWaiting()) > 0 {
			return res, nil
		}
		select {
		case <-w.news:
			time.Sleep(gather)
		case <-ctx.Done():
			return lost, nil
		case <-activity.GetWorkerStopChannel(ctx):
			return lost, nil
		case <-beat.C:
			if !heartbeat.IsWanted(ctx, p.client, info.TaskToken) {
				return lost, nil
			}
		}
	}
}

// Counts returns how many tasks wait for a node and how many hold a place on one.
func (p *Placement) Counts() (waiting, placed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Counts()
}

// Forget removes a run with its places and requests.
func (p *Placement) Forget(run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(run)
	delete(p.chains, run)
	p.pass()
}

// forget removes a run. mu is held.
func (p *Placement) forget(run string) {
	p.queue.Forget(run)
	if w := p.waiters[run]; w != nil {
		delete(p.waiters, run)
		wake(w.news)
	}
	delete(p.reported, run)
}

// SetNodes replaces the nodes of the fleet.
func (p *Placement) SetNodes(nodes []placement.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.SetNodes(nodes)
	p.pass()
}

// ExpectNodes sets whether nodes are about to register. Until they have, the queue gives up no task for lack of a
// suitable node.
func (p *Placement) ExpectNodes(are bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.SetExpectingNodes(are)
}

// Benched returns the nodes that get no tasks because their attempts kept failing, and until when.
func (p *Placement) Benched() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Benched()
}

// Suspicions returns the number of dispatches that each node did not pick up or did not start, by node name.
func (p *Placement) Suspicions() map[string]int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Suspicions()
}

// maxExplained bounds the encoded size of the answers about several tasks. As JSON they are up to five times as large.
const maxExplained = 256 << 10

// Explain returns the queue's view of a task. Given several tasks, it covers as many of the first ones as fit into one
// answer. It is a local activity.
func (p *Placement) Explain(_ context.Context, req *historyv1.ExplainRequest) (*historyv1.ExplainResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.valid() {
		return nil, errNotLeader
	}
	if len(req.GetMore()) == 0 {
		return p.queue.Explain(req.GetRunId(), req.GetRequest()), nil
	}
	res := &historyv1.ExplainResponse{}
	for size, i := 0, 0; i < len(req.GetMore()) && (i == 0 || size < maxExplained); i++ {
		said := p.queue.Explain(req.GetRunId(), req.GetMore()[i])
		size += proto.Size(said)
		res.More = append(res.More, said)
	}
	return res, nil
}

// Run enforces the time-outs of requests and removes runs that have ended without notice. It returns when ctx ends.
func (p *Placement) Run(ctx context.Context) {
	sweep := time.NewTicker(p.sweeps)
	defer sweep.Stop()
	for {
		p.mu.Lock()
		at, ok := p.queue.NextDeadline()
		p.mu.Unlock()
		var due <-chan time.Time
		if ok {
			due = time.After(max(time.Until(at), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-sweep.C:
			p.sweep(ctx)
		case <-due:
			p.mu.Lock()
			p.pass()
			p.mu.Unlock()
		}
	}
}

// sweep removes runs that are closed or unknown to the server. A terminated run does not deregister itself.
func (p *Placement) sweep(ctx context.Context) {
	p.mu.Lock()
	runs := p.queue.Runs()
	p.mu.Unlock()
	for _, run := range runs {
		closed, err := p.closed(ctx, run)
		if err != nil {
			p.logger.Debug("a run could not be described", "run", run, "error", err)
			continue
		}
		if closed {
			p.Forget(run)
		}
	}
}

func (p *Placement) closed(ctx context.Context, run string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := p.client.DescribeWorkflowExecution(ctx, run, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return d.GetWorkflowExecutionInfo().GetCloseTime() != nil, nil
}

// pass places tasks where possible and wakes the runs that have news. mu is held.
func (p *Placement) pass() {
	for _, run := range p.queue.Place() {
		if w := p.waiters[run]; w != nil {
			wake(w.news)
		}
	}
	wake(p.changed)
}

// news returns the news of a run. mu is held.
func (p *Placement) news(run string) *historyv1.PlaceResponse {
	res := &historyv1.PlaceResponse{Epoch: p.queue.Epoch()}
	assigned, waiting := p.queue.Take(run)
	res.Assigned = assigned
	reasons := 0
	for _, w := range waiting {
		if !w.GetGivenUp() {
			if reasons++; reasons > maxReasons {
				continue
			}
		}
		res.Waiting = append(res.Waiting, w)
	}
	return res
}

// await registers the caller as the receiver of a run's news if its execution is the newest.
func (p *Placement) await(run, execution string) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiters[run]; w == nil || w.execution != execution {
		return &waiter{execution: execution}
	}
	return p.replaceWaiter(run, execution)
}

// replaceWaiter registers a new waiter for a run and wakes the old one, which then ends. mu is held.
func (p *Placement) replaceWaiter(run, execution string) *waiter {
	if old := p.waiters[run]; old != nil {
		wake(old.news)
	}
	w := &waiter{execution: execution, news: make(chan struct{}, 1)}
	p.waiters[run] = w
	return w
}

// newsFor returns the news of a run and the run's newest chain. current is false if another waiter receives the news by
// now.
func (p *Placement) newsFor(w *waiter, run string) (res *historyv1.PlaceResponse, chain string, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiters[run] != w || !p.valid() {
		return &historyv1.PlaceResponse{Epoch: p.queue.Epoch(), Resync: true}, "", false
	}
	if all := p.chains[run]; len(all) > 0 {
		chain = all[len(all)-1]
	}
	return p.news(run), chain, true
}

func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

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
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// gather is how long AwaitPlacement waits after its first news: what comes
	// up together is reported together.
	gather = 5 * time.Millisecond
	// awaitBeat is the time between the heartbeats of AwaitPlacement, well within the 5 s after which a run asks the
	// next owner of the queue.
	awaitBeat = 2 * time.Second
	// maxReasons bounds the reasons for waiting in one answer, which all go into
	// the history of the run.
	maxReasons = 50
	// defaultSweepInterval is how often runs that ended without a word are looked for.
	defaultSweepInterval = 15 * time.Second
)

// Placement is the placement queue of the control process, with the activities
// that runs reach it by. It is safe for concurrent use.
type Placement struct {
	client client.Client
	logger *slog.Logger
	grants *grants.Grants // nil: nodes need none
	sweeps time.Duration
	valid  func() bool

	mu       sync.Mutex
	queue    *placement.Queue
	waiters  map[string]*waiter   // by run
	reported map[string]*reported // by run
	chains   map[string][]string  // by run, those that have asked, the newest last
	changed  chan struct{}        // has room for one: deadlines may have moved
}

// waiter receives what is new for a run: the newest AwaitPlacement of the
// execution that asked last. One of an older execution, or one that Temporal has
// given up on, would take news that are never read.
type waiter struct {
	execution string        // Temporal's own id
	news      chan struct{} // has room for one wake-up
}

// PlacementOptions are the settings of a Placement.
type PlacementOptions struct {
	// SweepInterval is how often runs that ended without a word are looked for; 0: 15 s.
	SweepInterval time.Duration
	// Valid reports whether this is still the placement queue of the fleet; nil: always.
	Valid func() bool
	// Grants receives what nodes are given, before the nodes can get it; nil: they need no grants.
	Grants *grants.Grants
	Logger *slog.Logger
}

// errNotLeader is the answer of a placement queue that is not the fleet's any more.
var errNotLeader = errors.New("this process does not own the placement queue")

// NewPlacement returns a placement around a queue, which it owns.
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

// Place is a local activity: it takes the requests and releases of a run and
// answers with what the run has been given so far.
func (p *Placement) Place(ctx context.Context, req *v1.PlaceRequest) (*v1.PlaceResponse, error) {
	res, err := p.answer(activity.GetInfo(ctx).WorkflowExecution.RunID, req)
	if err != nil {
		return nil, err
	}
	// Without its grants the run asks again, and is answered again, since it has not acknowledged this answer.
	return res, p.grant(ctx, req.GetRunId(), req.GetChain(), res.GetAssigned())
}

func (p *Placement) answer(execution string, req *v1.PlaceRequest) (*v1.PlaceResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.valid() {
		return nil, errNotLeader
	}
	if !p.admitChain(req.GetRunId(), req.GetChain()) {
		return &v1.PlaceResponse{Epoch: p.queue.Epoch()}, nil
	}
	if w := p.waiters[req.GetRunId()]; w == nil || w.execution != execution {
		p.replaceWaiter(req.GetRunId(), execution)
	}
	p.queue.Release(req.GetRunId(), req.GetReleased())
	p.queue.Request(req.GetRunId(), req.GetRequests())
	if !p.queue.Knows(req.GetRunId()) {
		delete(p.chains, req.GetRunId()) // it waits for nothing, and is not forgotten by sweep
	}
	p.queue.Repeat(req.GetRunId(), p.unacknowledged(req))
	p.pass()
	res := p.news(req.GetRunId())
	p.recordAnswer(req.GetRunId(), res)
	return res, nil
}

// admitChain reports whether a run asks by its newest chain. A chain that is new takes the place of the one before: the
// claims of a run that was reset count from the reset point again. mu is held.
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

// AwaitPlacement returns when the queue has something new for a run. A queue
// that is not the one that the run has made its requests to, and one whose
// earlier answer may have been lost, asks for all of them again; so does one that
// stops.
func (p *Placement) AwaitPlacement(ctx context.Context, req *v1.AwaitPlacementRequest) (*v1.PlaceResponse, error) {
	info := activity.GetInfo(ctx)
	lost := &v1.PlaceResponse{Epoch: p.queue.Epoch(), Resync: true}
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

// Counts returns how many tasks wait for a node, and how many hold a place on one.
func (p *Placement) Counts() (waiting, placed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Counts()
}

// Forget drops a run with all it holds and waits for.
func (p *Placement) Forget(run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(run)
	delete(p.chains, run)
	p.pass()
}

// forget drops a run. mu is held.
func (p *Placement) forget(run string) {
	p.queue.Forget(run)
	if w := p.waiters[run]; w != nil {
		delete(p.waiters, run)
		wake(w.news)
	}
	delete(p.reported, run)
}

// SetNodes replaces the fleet.
func (p *Placement) SetNodes(nodes []placement.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.SetNodes(nodes)
	p.pass()
}

// ExpectNodes reports whether nodes are about to register: while they are, nothing is
// given up because no node could ever take it.
func (p *Placement) ExpectNodes(are bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.Expect(are)
}

// Benched are the nodes that get nothing because their attempts kept failing,
// with until when.
func (p *Placement) Benched() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Benched()
}

// Suspicions returns how many dispatches nodes have not picked up, or not started, by name.
func (p *Placement) Suspicions() map[string]int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Suspicions()
}

// maxExplained is what the answers about several tasks may take, encoded; as JSON they are up to five times as large.
const maxExplained = 256 << 10

// Explain is a local activity: it says what the queue thinks of a task, or of several, of the first of them as far as
// one answer holds.
func (p *Placement) Explain(_ context.Context, req *v1.ExplainRequest) (*v1.ExplainResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.valid() {
		return nil, errNotLeader
	}
	if len(req.GetMore()) == 0 {
		return p.queue.Explain(req.GetRunId(), req.GetRequest()), nil
	}
	res := &v1.ExplainResponse{}
	for size, i := 0, 0; i < len(req.GetMore()) && (i == 0 || size < maxExplained); i++ {
		said := p.queue.Explain(req.GetRunId(), req.GetMore()[i])
		size += proto.Size(said)
		res.More = append(res.More, said)
	}
	return res, nil
}

// Run keeps the time-outs of requests, and forgets runs that have ended without
// a word, until ctx ends.
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

// sweep forgets the runs that are closed or unknown to the server: one that was
// terminated says nothing itself.
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

// pass places what can be placed and wakes the runs that have news. mu is held.
func (p *Placement) pass() {
	for _, run := range p.queue.Place() {
		if w := p.waiters[run]; w != nil {
			wake(w.news)
		}
	}
	wake(p.changed)
}

// news returns what is new for a run. mu is held.
func (p *Placement) news(run string) *v1.PlaceResponse {
	res := &v1.PlaceResponse{Epoch: p.queue.Epoch()}
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

// await makes the caller the one that receives news, if its execution is the newest.
func (p *Placement) await(run, execution string) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiters[run]; w == nil || w.execution != execution {
		return &waiter{execution: execution}
	}
	return p.replaceWaiter(run, execution)
}

// replaceWaiter puts a new waiter in the place of the one that was there, which ends. mu is held.
func (p *Placement) replaceWaiter(run, execution string) *waiter {
	if old := p.waiters[run]; old != nil {
		wake(old.news)
	}
	w := &waiter{execution: execution, news: make(chan struct{}, 1)}
	p.waiters[run] = w
	return w
}

// newsFor returns what is new for a run, and the newest chain of the run, unless another one receives it by now.
func (p *Placement) newsFor(w *waiter, run string) (res *v1.PlaceResponse, chain string, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiters[run] != w || !p.valid() {
		return &v1.PlaceResponse{Epoch: p.queue.Epoch(), Resync: true}, "", false
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

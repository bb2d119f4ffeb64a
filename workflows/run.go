package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// run is one execution of the workflow Run. All of it is touched by the
// workflow's own goroutine only.
type run struct {
	// ctx outlives the cancellation of root, so that what runs can be stopped in order.
	ctx, root workflow.Context
	limits    Limits
	in        *v1.RunInput
	id        string
	graph     *dag.Graph
	core      *dag.State // nil until the run has begun, like the board
	board     *board
	log       *eventLog
	context   *structpb.Struct

	flights     []flight
	events      []dag.Event
	attempts    map[int]*attempt
	assignments []assignment
	placement   placement
	conditions  []int
	scheduled   int // bytes that this workflow task has scheduled
	cancelled   bool
	draining    bool // the history is full: nothing is started any more
	deadLetters int  // as the search attribute says
}

// flight is something under way, and what to do when it is over.
type flight struct {
	future workflow.Future
	land   func(workflow.Future)
}

// attempt is an activity Execute under way.
type attempt struct {
	claim  int32
	cancel workflow.CancelFunc
}

// Runner is the workflow Run with its limits. The limits are part of the
// workflow's code: other ones do not replay the histories of these.
type Runner struct {
	Limits Limits
}

// Run carries one run of a definition through to its end. The result is its
// final status. A run whose tasks failed ends as an application error, a
// cancelled one as a cancellation; both hold the final status as their detail.
func (runner Runner) Run(ctx workflow.Context, in *v1.RunInput) (*v1.StatusResponse, error) {
	r, err := newRun(ctx, in, runner.Limits.withDefaults())
	if err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), "bad_definition", err)
	}
	if err := r.handle(); err != nil {
		return nil, err
	}
	if err := r.begin(); err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), "bad_state", err)
	}
	decisions := r.core.Start()
	for {
		r.carryOut(decisions)
		if end := decisions.End; end != nil {
			return r.finish(end)
		}
		if r.mustContinueAsNew() && len(r.attempts) == 0 {
			if r.gather(); len(r.events) == 0 {
				if err := r.continueAsNew(); err != nil {
					return nil, err
				}
			}
		}
		r.saveEvents()
		decisions = r.core.Apply(r.next()...)
	}
}

func newRun(root workflow.Context, in *v1.RunInput, limits Limits) (*run, error) {
	graph, err := dag.NewGraph(in.GetDefinition())
	if err != nil {
		return nil, err
	}
	ctx, _ := workflow.NewDisconnectedContext(root)
	info := workflow.GetInfo(root)
	r := &run{
		ctx: ctx, root: root, limits: limits, in: in, graph: graph,
		id:       info.WorkflowExecution.ID,
		attempts: map[int]*attempt{},
		context:  cloneStruct(in.GetDefinition().GetContext()),
	}
	r.placement.waiting = make([]int32, graph.Len())
	return r, nil
}

// begin makes the state that the run goes on from.
func (r *run) begin() error {
	now := workflow.Now(r.root)
	switch {
	case r.in.GetCarry() != nil:
		if err := r.restore(r.in.GetCarry()); err != nil {
			return err
		}
		r.log = r.board.log
	case r.in.GetGeneration() > 0:
		if err := r.reopen(); err != nil {
			return err
		}
		r.log = r.board.log
		r.log.add(now, eventSubmitted, wholeRun, "", 0, 0, fmt.Sprintf("generation %d", r.in.GetGeneration()))
	default:
		r.core = dag.New(r.graph)
		r.board = newBoard(r.id, r.in, r.graph, workflow.GetInfo(r.root).WorkflowStartTime)
		r.log = r.board.log
		r.log.add(now, eventSubmitted, wholeRun, "", 0, 0, "")
		for i := range r.graph.Len() {
			r.log.add(now, eventSubmitted, i, "", 0, 0, "")
		}
	}
	r.deadLetters = r.shownDeadLetters()
	return nil
}

// next waits until something has happened and returns all that has.
func (r *run) next() []dag.Event {
	if len(r.events) == 0 {
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, r.hasNews)
		r.scheduled = 0
	}
	r.gather()
	events := r.events
	r.events = nil
	return events
}

func (r *run) hasNews() bool {
	if len(r.events) > 0 || !r.cancelled && r.cancelRequested() {
		return true
	}
	for i := range r.flights {
		if r.flights[i].future.IsReady() {
			return true
		}
	}
	return false
}

func (r *run) cancelRequested() bool {
	return r.root.Err() != nil || workflow.GetSignalChannel(r.root, names.CancelSignal).Len() > 0
}

// gather turns everything that has happened into events, in a fixed order.
func (r *run) gather() {
	if r.cancelRequested() {
		drain(workflow.GetSignalChannel(r.root, names.CancelSignal))
		if !r.cancelled {
			r.cancelled = true
			r.events = append(r.events, dag.Cancel{})
		}
	}
	flying := r.flights
	r.flights = nil
	for i, f := range flying {
		if f.future.IsReady() {
			flying[i].land(f.future)
		} else {
			r.flights = append(r.flights, f)
		}
	}
}

// drain empties a signal's channel; a signal may carry anything, or nothing.
func drain(ch workflow.ReceiveChannel) {
	for ch.ReceiveAsync(nil) {
	}
}

// fly watches a future until it is ready.
func (r *run) fly(future workflow.Future, land func(workflow.Future)) {
	r.flights = append(r.flights, flight{future, land})
}

// after has something done later.
func (r *run) after(d time.Duration, summary string, do func()) {
	timer := workflow.NewTimerWithOptions(r.ctx, d, workflow.TimerOptions{Summary: summary})
	r.fly(timer, func(workflow.Future) { do() })
}

// carryOut does what the core has decided. What it learns on the way becomes
// events of the next round.
func (r *run) carryOut(d dag.Decisions) {
	now := workflow.Now(r.ctx)
	for _, i := range d.Changed {
		r.board.update(i, r.core.Task(i), now)
	}
	for _, i := range d.Withdraw {
		r.withdraw(i)
	}
	r.stop(d.Stop)
	for _, b := range d.Backoff {
		claim := r.core.Task(b.Task).Claim
		r.board.scheduleAfter(b.Task, now.Add(b.Delay), now)
		r.after(b.Delay, "back-off of "+r.graph.Name(b.Task), func() {
			r.events = append(r.events, dag.BackoffOver{Task: b.Task, Claim: claim})
		})
	}
	r.conditions = append(r.conditions, d.Evaluate...)
	for _, i := range d.Place {
		r.board.queue(i, now)
		r.request(i)
	}
	r.showDeadLetters()
	if d.End != nil {
		return
	}
	r.evaluate()
	r.dispatch()
	r.place()
}

// finish reports the end of the run to the store, to the placement queue, which
// forgets the run with all it holds, and to Temporal.
func (r *run) finish(end *dag.End) (*v1.StatusResponse, error) {
	now := workflow.Now(r.ctx)
	r.board.end(end, now)
	r.log.add(now, end.State, wholeRun, "", 0, 0, end.Error)
	status := r.board.whole()
	ctx := workflow.WithLocalActivityOptions(r.ctx, localOptions("save the status"))
	var kept v1.StatusResponse
	events := r.log.unstored(r.id, r.in.GetGeneration())
	if err := workflow.ExecuteLocalActivity(ctx, names.SaveStatusActivity, status, events).Get(ctx, &kept); err != nil {
		// The status could not be stored; what fits is kept in the history at least.
		kept.Reset()
		proto.Merge(&kept, status)
		kept.Run.Tasks = nil
	}
	r.awaitHandlers()
	switch end.State {
	case "completed":
		return &kept, nil
	case "cancelled":
		return nil, temporal.NewCanceledError(&kept)
	default:
		return nil, temporal.NewApplicationErrorWithOptions(end.Error, end.Reason,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{&kept}})
	}
}

func cloneStruct(s *structpb.Struct) *structpb.Struct {
	if s == nil {
		return &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	c := proto.CloneOf(s)
	if c.Fields == nil {
		c.Fields = map[string]*structpb.Value{}
	}
	return c
}

// mergeContext adds what a task wrote to the context of the run. The newest
// value of a key wins.
func (r *run) mergeContext(update *structpb.Struct) error {
	if len(update.GetFields()) == 0 {
		return nil
	}
	merged := proto.CloneOf(r.context)
	proto.Merge(merged, update) // replaces the values of keys that both have
	if size := proto.Size(merged); size > definition.MaxContextBytes {
		return fmt.Errorf("the context would grow to %d bytes; a run may have %d", size, definition.MaxContextBytes)
	}
	r.context = merged
	r.board.setContext(merged)
	return nil
}

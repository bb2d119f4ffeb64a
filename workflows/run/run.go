package run

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/pending"
	"switchyard/workflows/phrase"
	"switchyard/workflows/status"
	"switchyard/workflows/structs"
)

// run is one execution of the workflow Run. Only the workflow's main coroutine accesses it, and handlers between its steps.
type run struct {
	// ctx outlives the cancellation of root, so that running attempts can be stopped in order.
	ctx, root workflow.Context
	limits    limits.Run
	received  *v1.RunInput // as received; the next execution gets it unchanged
	in        *v1.RunInput
	id        string // ID of the run that the tasks belong to
	self      string // ID of this workflow; differs from id in a partition
	chain     string // chain of the run, under which the tasks store their data
	selfChain string // chain under which this workflow stores its data; "" in a partition, whose ID contains the chain of its run
	graph     *dag.Graph
	core      *dag.State // nil until the run has begun, as is status
	status    *status.Status
	log       *eventlog.Log
	context   *structpb.Struct

	pending  pending.Set
	events   []dag.Event
	commands []*command
	refusal  error // the answer to commands once the loop no longer executes them; nil until then
	woken    bool  // something other than an event has happened

	questions   []question
	openEnds    int          // ended attempts not yet reported to the core
	unexpanded  map[int]bool // held tasks that fan out
	admission   *admission.Queue
	units       map[int]*unit // units in flight, by each of their members
	locks       locks
	placement   placement
	assignments []assignment
	attempts    map[int]*attempt // by each member
	dispatched  int              // number of running Execute activities
	detaching   detaching
	abandoned   []*v1.AwaitAnswerRequest // attempts of the previous generation that may still run
	steerings   int                      // pending requests to nodes about attempts
	approvals   map[int]*approval        // tasks that wait for approval
	childRuns   map[int]*child           // runs of tasks of type run
	children    children
	partitioned []*partitionedFanOut // fan-outs that children of the run execute
	reports     reports              // for a partition
	completed   []dispatchEnd        // ends whose results are to be cached
	deadlines   map[int]*deadline
	deadlineAt  time.Time // deadline of the run; zero if it has none

	outage                     outage
	sharedContext, sharedInput sharedObject
	ancestors                  map[int]storedAncestors // by task
	budget                     budget
	cancelled                  bool
	cancelledBy                string // or "" if unknown
	draining                   bool   // nothing is admitted: the run is about to continue as new
	attributes                 attributes
}

// Runner is the workflow Run with its limits. The limits are part of the workflow code: a Runner with other limits cannot
// replay these histories.
type Runner struct {
	Limits limits.Run
}

// Run executes a definition to its end. It returns the final status, shortened for children and for large runs. A run with
// failed tasks ends with an application error and a cancelled run with a cancellation; both carry the status as their detail.
func (runner Runner) Run(ctx workflow.Context, in *v1.RunInput) (*v1.StatusResponse, error) {
	r := newRun(ctx, in, runner.Limits.WithDefaults())
	if err := r.handle(); err != nil {
		return nil, err
	}
	if in.GetWorkflow() != "" {
		return nil, r.beginStored()
	}
	err := r.readInput()
	r.readAttributes()
	if err != nil {
		return nil, r.unfit("bad_definition", err)
	}
	if err := r.begin(); err != nil {
		return nil, r.unfit("bad_state", err)
	}
	decisions := r.start()
	for {
		r.apply(decisions)
		if end := decisions.End; end != nil {
			return r.finish(end)
		}
		switch {
		case !r.draining:
		case r.isQuiet():
			if err := r.continueAsNew(); err != nil {
				return nil, err
			}
		default:
			r.detach()
		}
		r.saveEvents()
		decisions = r.core.Apply(r.next()...)
	}
}

// unfit ends a run that cannot begin. It returns the error of the workflow.
func (r *run) unfit(kind string, err error) error {
	r.endAttributes(v1.RunFailed, err.Error())
	r.refuseCommands(names.RunEndedError, errJustEnded)
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, err)
}

// newRun returns a run that has only its input.
func newRun(root workflow.Context, received *v1.RunInput, limits limits.Run) *run {
	ctx, _ := workflow.NewDisconnectedContext(root)
	return &run{
		ctx: ctx, root: root, limits: limits, received: received,
		self:       workflow.GetInfo(root).WorkflowExecution.ID,
		unexpanded: map[int]bool{},
		units:      map[int]*unit{},
		locks:      locks{wanted: map[string]*unit{}, held: map[string]*unit{}},
		attempts:   map[int]*attempt{},
		approvals:  map[int]*approval{},
		childRuns:  map[int]*child{},
		children:   newChildren(),
		deadlines:  map[int]*deadline{},
		ancestors:  map[int]storedAncestors{},
		detaching:  detaching{bound: limits.Hard()},
	}
}

// readInput loads and validates the input of the run.
func (r *run) readInput() error {
	whole := r.received
	if key := whole.GetStored(); key != "" {
		whole = &v1.RunInput{}
		if err := r.mustNow("load what it was started with", names.LoadInputActivity, whole, key); err != nil {
			return fmt.Errorf("load what the run was started with: %w", err)
		}
		whole.State, whole.Chain = r.received.GetState(), cmp.Or(r.received.GetChain(), whole.GetChain())
	}
	var err error
	if r.in, err = definition.Unpack(whole); err != nil {
		return err
	}
	if err := r.validateInput(); err != nil {
		return err
	}
	if r.in.GetPartition() == nil {
		// Inputs of runs that a schedule or a person starts directly in Temporal lack their defaults.
		//workflowcheck:ignore (the inputs are looked at in the order of their names)
		if r.in.Input, err = definition.Input(r.in.GetDefinition(), r.in.GetInput()); err != nil {
			return err
		}
	}
	if r.graph, err = dag.NewGraph(r.in.GetDefinition(), r.in.GetReferences()); err != nil {
		return err
	}
	r.id = cmp.Or(r.in.GetPartition().GetRunId(), r.self)
	r.chain = chainOf(workflow.GetInfo(r.root), cmp.Or(r.in.GetChain(), r.in.GetPartition().GetChain()))
	if r.in.GetPartition() == nil {
		r.selfChain = r.chain
	}
	r.context = structs.Clone(r.in.GetDefinition().GetContext())
	r.admission = admission.New(int(r.in.GetDefinition().GetMaxParallel()))
	r.admission.LimitChildren(r.limits.Children)
	return nil
}

// chainOf returns the chain of an execution, given the chain that it was started with, or "". A reset begins a new chain
// because it has another run ID than the history that it continues. The new chain keeps results of the old execution from
// answering work that the reset repeats.
func chainOf(info *workflow.Info, given string) string {
	if execution := info.WorkflowExecution.RunID; info.OriginalRunID != execution {
		return execution
	}
	return cmp.Or(given, info.FirstRunID)
}

// home returns the key prefix under which this workflow stores its data.
func (r *run) home() string { return names.Home(r.self, r.selfChain) }

// execution returns the Temporal run ID of this execution.
func (r *run) execution() string { return workflow.GetInfo(r.root).WorkflowExecution.RunID }

// begin creates or restores the state of the run.
func (r *run) begin() error {
	now := workflow.Now(r.root)
	switch {
	case r.in.GetState() != nil:
		if err := r.restore(r.in.GetState()); err != nil {
			return err
		}
		r.log = r.status.Log
	case r.in.GetGeneration() > 0 && r.in.GetPartition() == nil:
		if err := r.reopen(); err != nil {
			return err
		}
		r.log = r.status.Log
		r.log.Add(now, v1.EventSubmitted, eventlog.WholeRun, "", 0, 0, phrase.By(fmt.Sprintf("generation %d", r.in.GetGeneration()), r.in.GetBy()),
			eventlog.KeyGeneration.Of(r.in.GetGeneration()), eventlog.KeyBy.Of(r.in.GetBy()))
	case r.in.GetPartition() != nil && r.in.GetPartition().GetPrevious() != "":
		r.reopenPartition()
	default:
		r.beginNew()
	}
	r.status.WaitReason = r.waitReason
	r.learn(0, r.in.GetPartition().GetDurationEstimate())
	r.armRun()
	r.watchParent()
	r.awaitAbandoned()
	return nil
}

// beginNew creates the state of a run without previous work.
func (r *run) beginNew() {
	now := workflow.Now(r.root)
	r.core = r.newCore()
	r.status = status.New(r.self, r.in, r.graph, workflow.GetInfo(r.root).WorkflowStartTime)
	r.log = r.status.Log
	r.log.Add(now, v1.EventSubmitted, eventlog.WholeRun, "", 0, 0, phrase.By("", r.in.GetBy()), eventlog.KeyBy.Of(r.in.GetBy()))
	for i := range r.graph.Len() {
		r.log.Add(now, v1.EventSubmitted, i, "", 0, 0, "")
	}
	if r.in.GetPartition().GetPaused() {
		r.admission.Pause()
	}
}

// next waits until something has happened and returns all new events.
func (r *run) next() []dag.Event {
	if len(r.events) == 0 {
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, r.hasNews)
	}
	r.gather()
	events := r.events
	r.events = nil
	return events
}

func (r *run) hasNews() bool {
	if len(r.events) > 0 || len(r.commands) > 0 || r.woken || len(r.locks.requests) > 0 || !r.cancelled && r.cancelRequested() {
		return true
	}
	if r.pending.HasReady() {
		return true
	}
	for _, signal := range []string{names.GrantedSignal, names.PartitionReportSignal, names.OrderSignal, names.ContextSignal, names.ApproveUpdate, names.RejectUpdate} {
		if workflow.GetSignalChannel(r.root, signal).Len() > 0 {
			return true
		}
	}
	return false
}

func (r *run) cancelRequested() bool {
	return r.root.Err() != nil || workflow.GetSignalChannel(r.root, names.CancelSignal).Len() > 0
}

// gather turns everything that has happened into events, in a fixed order, and executes the queued commands.
func (r *run) gather() {
	r.receive()
	r.obey()
}

// receive turns everything that has happened into events, in a fixed order.
func (r *run) receive() {
	r.woken = false
	if r.cancelRequested() {
		r.cancel(r.cancelReason())
	}
	r.receivePartitionReports()
	r.takeOrders()
	r.receiveAnswers()
	r.refuseSignals()
	r.pending.Settle()
	r.receiveGrants()
}

// cancel cancels the whole run. who is the person, or "" if unknown. The first reason counts.
func (r *run) cancel(who, why string) {
	if !r.cancelled {
		r.cancelled, r.cancelledBy = true, cmp.Or(r.cancelledBy, who)
		r.events = append(r.events, dag.Cancel{Error: why})
	}
}

// cancelReason receives the signals that cancel the run. It returns the person and the one-line reason of the first signal that
// has any. A signal may carry a RunCommand, a plain reason, or nothing.
func (r *run) cancelReason() (who, why string) {
	ch := workflow.GetSignalChannel(r.root, names.CancelSignal)
	for ch.Len() > 0 {
		var sent converter.RawValue
		if ch.ReceiveAsync(&sent) && why == "" {
			who, why = cancelText(sent)
		}
	}
	return who, why
}

func cancelText(sent converter.RawValue) (who, why string) {
	var c v1.RunCommand
	if payload := sent.Payload(); payload != nil && converter.GetDefaultDataConverter().FromPayload(payload, &c) != nil {
		c.Reset()
		if converter.GetDefaultDataConverter().FromPayload(payload, &c.Reason) != nil {
			return "", ""
		}
	}
	if c.GetBy() == "" && c.GetReason() == "" {
		return "", ""
	}
	return c.GetBy(), phrase.Because(phrase.By("cancelled", c.GetBy()), dag.OneLine(c.GetReason()))
}

// wake starts another round of the loop even without an event.
func (r *run) wake() { r.woken = true }

// after calls a function after a delay.
func (r *run) after(d time.Duration, summary string, do func()) {
	r.charge(commandCharge)
	timer := workflow.NewTimerWithOptions(r.ctx, d, workflow.TimerOptions{Summary: summary})
	r.pending.Watch(timer, func(workflow.Future) { do() })
}

// apply carries out the decisions of the core. What it learns meanwhile becomes the events of the next round.
func (r *run) apply(d dag.Decisions) {
	now := workflow.Now(r.ctx)
	r.status.AddInstances(r.core)
	r.receiveCount()
	for _, i := range d.Changed {
		r.status.Update(i, r.core.Task(i), now)
		if v1.IsTaskDispatched(r.core.Task(i).State) {
			r.ready(i, now) // it is not called again for instances that were requeued
		}
		r.disarm(i)
	}
	for _, i := range d.Withdraw {
		r.withdraw(i)
	}
	r.stop(d.Stop)
	r.haltPartitions(d.Halt)
	r.resumePartitions(d.Resume)
	for _, b := range d.Backoff {
		claim := r.core.Task(b.Task).Claim
		r.status.SetRetryTime(b.Task, now.Add(b.Delay), now)
		r.after(b.Delay, "back-off of "+r.core.Name(b.Task), func() {
			r.events = append(r.events, dag.BackoffOver{Task: b.Task, Claim: claim})
		})
		r.ready(b.Task, now)
	}
	for _, i := range d.Evaluate {
		r.ready(i, now)
		r.ask(question{task: i, kind: asksCondition})
	}
	for _, i := range d.Expand {
		r.ready(i, now)
		r.expand(i)
	}
	for _, i := range d.Place {
		r.ready(i, now)
		r.status.SetQueued(i, now)
		if r.looksUp(i) {
			r.ask(question{task: i, kind: asksCache, claim: r.core.Task(i).Claim})
		} else {
			r.want(i)
		}
	}
	r.saveCached()
	if d.End != nil {
		return
	}
	r.limitHistory()
	r.evaluate()
	r.admit()
	if len(r.questions) > 0 {
		r.wake() // the next round evaluates their expressions first
	}
	r.askLocks()
	if len(r.abandoned) == 0 {
		r.openAllPartitions()
	}
	r.readChildResults()
	r.prepareChildren()
	r.awaitRuns()
	r.reattachDetached()
	r.dispatch()
	r.place()
	r.report()
	r.showState()
}

// finish reports the end of the run to the store, to Temporal, and to the placement queue, which then forgets the run and its
// placements.
func (r *run) finish(end *dag.End) (*v1.StatusResponse, error) {
	r.endAbandoned()
	now := workflow.Now(r.ctx)
	r.log.Add(now, end.State, eventlog.WholeRun, "", 0, 0, end.Error, append(eventlog.CauseFacts(end.Reason, end.Error), eventlog.KeyBy.Of(r.cancelledBy))...)
	final := r.status.Whole()
	final.Chain = r.selfChain
	status.EndRun(final.GetRun(), end, now)
	final.Partitions = r.allPartitions()
	final.Items, final.EventSlices = r.status.AllItems(), r.log.StoredParts()
	final.NextEvent = r.log.Next()
	if r.log.Len() > 0 {
		final.EventSlices++
	}
	r.status.AddCheckpoints(final)
	if err := r.mustNow("save its status", names.SaveStatusActivity, nil, final, r.unstoredEvents()); err != nil {
		workflow.GetLogger(r.ctx).Error("the store takes no such status", "error", err)
	}
	final.Checkpoints = nil // the next generation reads them from the store
	kept := workflowResult(final, r.isChild())
	status.EndRun(r.status.Run, end, now) // only after it is stored: until then the run is open
	r.attributes.wanted.DeadLetters = r.countDeadLetters()
	r.endAttributes(end.State, end.Error)
	r.lastReport()
	r.releaseSlot()
	r.charge(2 * maxResultBytes)
	r.refuseCommands(names.RunEndedError, errJustEnded)
	switch end.State {
	case v1.RunCompleted:
		return kept, nil
	case v1.RunCancelled:
		return nil, temporal.NewCanceledError(kept)
	default:
		return nil, temporal.NewApplicationErrorWithOptions(end.Error, end.Reason,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{kept}})
	}
}

// maxResultBytes is the largest final status that becomes the result of the workflow. As JSON it takes about twice as much.
const maxResultBytes = 128 << 10

// isChild reports whether this is a child run or a partition, whose result goes into the history of its parent run.
func (r *run) isChild() bool { return r.in.GetParentRun() != "" || r.in.GetPartition() != nil }

// workflowResult returns the workflow result for a final status. A large status, or that of a child, is only in the store: the
// result then holds how the run has ended and what locates the stored status.
func workflowResult(status *v1.StatusResponse, child bool) *v1.StatusResponse {
	if !child && proto.Size(status) <= maxResultBytes {
		return status
	}
	run := status.GetRun()
	return &v1.StatusResponse{
		Run: &v1.Run{
			Id: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(), Error: run.GetError(),
			CreatedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(), Generation: run.GetGeneration(),
		},
		Revision:  status.GetRevision(),
		TaskCount: status.GetTaskCount(),
		Chain:     status.GetChain(),
	}
}

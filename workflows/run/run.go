package run

import (
	"time"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/child"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
	"switchyard/workflows/view"
	"switchyard/workflows/visibility"
)

// run is one execution of the workflow Run. Only the workflow's main coroutine accesses it, and handlers between its steps.
type run struct {
	flight.Config
	// selfChain is the chain under which this workflow stores its data; "" in a partition, because its ID contains the chain of its run.
	selfChain string

	// ctx outlives the cancellation of root, so that running attempts can be stopped in order.
	ctx, root workflow.Context
	now       func() time.Time
	calls     *calls.Calls
	received  *historyv1.RunInput // as received; the next execution gets it unchanged
	graph     *dag.Graph
	core      *dag.State // nil until the run has begun, as are fanOuts, records, flight, data and status
	fanOuts   *fanout.State
	records   *flight.Records
	flight    *flight.State
	data      *dataflow.State // what tasks and expressions see
	status    *view.Status
	log       *eventlog.Log
	draining  bool // nothing is admitted: the run is about to continue as new
	inFinally bool // `finally` has begun, and its time-out runs

	commands *command.State // what people have asked

	settling map[int64]flight.Effect // what waits for the answers to context updates, by number

	updates, signals int         // received by this execution
	waiting          bool        // the run has not begun: it waits for its approval or its run slot
	events           []dag.Event // what has happened since the core was last asked for decisions, in order
	woken            bool        // something other than an event has happened

	history  history
	children *child.State

	cancels  map[*flight.Unit]workflow.CancelFunc // of the activities that wait for attempts
	timers   map[flight.Timer]func()              // stop the timers
	awaiting workflow.CancelFunc                  // of the activity that waits for the ends of workflows; nil if none runs
	givenUp  []workflow.Future                    // requests to nodes to give places of gangs up

	uncached []flight.End // ends whose results are to be cached

	queue    []*request // updates for the main loop
	refusal  error      // the answer to updates once the loop no longer carries them out; nil until then
	steering int        // updates that wait for the answer of a node

	fleet  *historyv1.FleetNotify   // nil until this execution has asked for it
	untold []*historyv1.NotifyInput // events that are not known to be in the outbox

	// shown are the search attributes that visibility has, and wanted those that it should have. A partition has none.
	shown, wanted visibility.Attributes
}

// newRun returns a run that has only its input.
func newRun(root workflow.Context, received *historyv1.RunInput, limits limits.Run) *run {
	ctx, _ := workflow.NewDisconnectedContext(root)
	info := workflow.GetInfo(root)
	self := info.WorkflowExecution
	r := &run{
		Config: flight.Config{
			Self: self.ID, First: info.FirstRunID, Original: info.OriginalRunID, Execution: self.RunID, Home: names.Home(self.ID, ""),
			Limits: limits, HeartbeatTimeout: options.HeartbeatTimeout,
		},
		ctx: ctx, root: root, calls: calls.New(ctx, limits.ScheduleBytes), received: received, commands: command.New(received.GetState().GetCarriedOut()),
		now: func() time.Time { return workflow.Now(ctx) }, settling: map[int64]flight.Effect{}, history: history{bound: limits.Hard()},
		children: child.New(), cancels: map[*flight.Unit]workflow.CancelFunc{}, timers: map[flight.Timer]func(){},
	}
	r.calls.Home, r.calls.IsInterrupted, r.calls.ShowProblem = r.Home, r.isInterrupted, r.showProblem
	return r
}

// Runner is the workflow Run with its limits. The limits are part of the workflow code: a Runner with other limits cannot
// replay these histories.
type Runner struct {
	Limits limits.Run
}

// Run executes a definition to its end. It returns the final status, shortened for children and for large runs. A run with
// failed tasks ends with an application error and a cancelled run with a cancellation; both carry the status as their detail.
func (runner Runner) Run(ctx workflow.Context, in *historyv1.RunInput) (*historyv1.StatusResponse, error) {
	r := newRun(ctx, in, runner.Limits.WithDefaults())
	if err := r.handleQueries(); err != nil {
		return nil, err
	}
	if err := r.handleUpdates(); err != nil { // before anything else, so that no update is rejected while the run begins
		return nil, err
	}
	if in.GetWorkflow() != "" {
		return nil, r.beginStored()
	}
	err := r.readInput()
	r.readAttributes()
	if err != nil {
		return nil, r.failStart(v1.ReasonBadDefinition, err)
	}
	if err := r.begin(); err != nil {
		return nil, r.failStart(v1.ReasonBadState, err)
	}
	decisions, err := r.start()
	if err != nil {
		return nil, err
	}
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
		case r.isDetaching() && r.canReattachChildren():
			r.fly(r.flight.Detach(r.history.round))
		}
		r.saveEvents()
		decisions = r.core.Apply(r.next()...)
	}
}

// next waits until something has happened and returns all new events.
func (r *run) next() []dag.Event {
	if !r.hasEvents() {
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, func() bool { return r.hasNews() || r.isFull() })
	}
	r.gather()
	return r.takeEvents()
}

// hasNews reports whether another round has anything to handle.
func (r *run) hasNews() bool {
	if !r.isEmpty() || len(r.queue) > 0 || r.flight.HasLockRequests() || r.isCancelDue() {
		return true
	}
	if r.calls.HasReady() {
		return true
	}
	for _, signal := range []string{names.GrantedSignal, names.PartitionReportSignal, names.OrderSignal, names.ContextSignal, names.ApproveUpdate, names.RejectUpdate} {
		if workflow.GetSignalChannel(r.root, signal).Len() > 0 {
			return true
		}
	}
	return false
}

// gather turns everything that has happened into events, in a fixed order, and executes the queued commands.
func (r *run) gather() {
	r.receive()
	r.obey()
}

// receive turns everything that has happened into events, in a fixed order.
func (r *run) receive() {
	r.beginRound()
	r.receiveCancel()
	receiveEach(r, names.PartitionReportSignal, func(p *historyv1.PartitionReport) { r.spread(r.fanOuts.Reported(p)) })
	receiveEach(r, names.OrderSignal, func(o *historyv1.PartitionOrder) { r.spread(r.fanOuts.Ordered(o, r.flight.IsPaused())) })
	receiveEach(r, names.ContextSignal, func(a *historyv1.ContextAnswer) { r.spread(r.fanOuts.Answered(a)) })
	r.refuseSignals(names.ApproveUpdate, v1.ApprovalApproved)
	r.refuseSignals(names.RejectUpdate, v1.ApprovalRejected)
	r.calls.Settle()
	receiveEach(r, names.GrantedSignal, func(g *historyv1.Granted) { r.fly(r.flight.Granted(g, r.now())) })
}

// isInterrupted reports whether a cancellation is waiting to be applied or attempts are waiting to be reattached.
func (r *run) isInterrupted() bool {
	return r.status != nil && !r.core.Over() && (r.isCancelDue() || r.isDetaching() && r.history.over.IsReady())
}

// apply carries out the decisions of the core. What it learns meanwhile becomes the events of the next round.
func (r *run) apply(d dag.Decisions) {
	now := r.now()
	r.beginFinally()
	r.status.AddInstances()
	for _, i := range d.Changed {
		r.records.Changed(i, r.core.Task(i), v1.IsRemote(r.core.Definition(i).GetType()), r.core.FansOut(i))
		r.status.Update(i, now)
		if v1.IsTaskDispatched(r.core.Task(i).State) {
			r.fly(r.flight.StartDeadline(i, now)) // it is not called again for instances that were requeued
		}
		r.fly(r.flight.StopDeadline(i))
	}
	for _, i := range d.Withdraw {
		r.fly(r.flight.Withdraw(i))
	}
	r.stop(d.Stop)
	r.spread(r.fanOuts.Halt(d.Halt))
	r.spread(r.fanOuts.Resume(d.Resume))
	for _, b := range d.Backoff {
		claim := r.core.Task(b.Task).Claim
		r.records.At(b.Task).QueuedAt = time.Time{}
		r.status.SetRetryTime(b.Task, now.Add(b.Delay), now)
		r.calls.After(b.Delay, "back-off of "+r.core.Name(b.Task), func() {
			r.raise(dag.BackoffOver{Task: b.Task, Claim: claim})
		})
		r.fly(r.flight.StartDeadline(b.Task, now))
	}
	for _, i := range d.Evaluate {
		r.fly(r.flight.StartDeadline(i, now))
		r.data.Ask(dataflow.Question{Task: i, Kind: dataflow.Condition})
	}
	for _, i := range d.Expand {
		r.fly(r.flight.StartDeadline(i, now))
		r.spread(r.fanOuts.Expand(i))
	}
	for _, i := range d.Place {
		r.fly(r.flight.StartDeadline(i, now))
		r.records.At(i).Queue(now)
		r.fly(r.flight.Want(i))
	}
	r.saveCached()
	if d.End != nil {
		return
	}
	r.fly(r.flight.ExcuseSilent())
	r.limitHistory()
	r.evaluate()
	if !r.draining && !r.flight.HasAbandoned() { // otherwise the next execution or a later round admits
		r.fly(r.flight.Admit(r.now()))
	}
	if r.data.HasQuestions() {
		r.wake() // the next round evaluates their expressions first
	}
	r.sendLockRequests()
	r.openPartitions()
	r.readResults()
	r.carryOutChild(r.children.Next())
	r.carryOutChild(r.children.Awaiting())
	r.fly(r.flight.Reattach(r.isDetaching()))
	r.dispatch()
	r.place()
	r.report()
	r.showState()
}

// beginFinally starts the time-out of `finally` when that begins. If the run was cancelled, a pause does not keep `finally` from starting.
func (r *run) beginFinally() {
	if r.inFinally || !r.core.InFinally() {
		r.fly(r.flight.PauseFinally(r.now()))
		return
	}
	r.inFinally = true
	r.fly(r.flight.StartFinally(r.now()))
	if r.core.Cancelled() && r.flight.IsPaused() {
		r.carryOutCommand(r.commands.SetPaused(false, &historyv1.TaskCommand{Reason: "finally begins"}))
	}
	end := r.core.TasksEnd()
	r.log.Add(r.now(), v1.EventFinally, eventlog.WholeRun, "", 0, 0, phrase.Because(end.State, end.Error), eventlog.CauseFacts(end.Reason, end.Error)...)
}

// stop ends tasks, unless their ends are on the way.
func (r *run) stop(tasks []int) {
	for _, i := range tasks {
		effects, ok := r.flight.Stop(i)
		r.fly(effects)
		if !ok {
			r.spread(r.fanOuts.Stop(i))
		}
	}
}

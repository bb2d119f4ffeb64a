package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// start begins the run once it is approved, if it needs approval, and has its run slot; until then nothing starts. It returns
// the first decisions, which hold the end of the run if something ends it before. An error ends the execution.
func (r *run) start() (dag.Decisions, error) {
	if r.Input.GetState() != nil && !r.Input.GetState().GetWaiting() {
		r.flight.RestoreSlot()
		return r.startAgain(), nil
	}
	r.waiting = true
	r.requestApproval()
	waited := r.commands.AwaitsApproval()
	early, over, err := r.awaitStart(nil, func() bool { return !r.commands.AwaitsApproval() })
	if waited && !over && err == nil {
		r.showState()
	}
	if !over && err == nil && r.flight.AskSlot() {
		early, over, err = r.awaitStart(early, r.flight.HasSlot)
	}
	r.waiting = false
	if over || err != nil {
		return r.core.Apply(early...), err
	}
	return r.core.Start(early...), nil
}

// awaitStart waits until the run may take its next step towards its start. It returns the events that occurred meanwhile, added to
// early, and whether they end the run. The error continues the run as new, when its history is full.
func (r *run) awaitStart(early []dag.Event, may func() bool) (_ []dag.Event, over bool, err error) {
	for !may() {
		r.sendLockRequests()
		isFull := func() bool { return len(early) == 0 && r.isFull() }
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, func() bool { return r.hasNews() || isFull() })
		r.gather()
		early = append(early, r.takeEvents()...)
		if k := slices.IndexFunc(early, endsRun); k >= 0 {
			return early[k:], true, nil // before that, a person may have cancelled every task
		}
		if !may() {
			r.showState() // a person may have paused or resumed the run
		}
		if isFull() && !may() {
			if err := r.continueAsNew(); err != nil {
				return early, false, err
			}
		}
	}
	return early, false, nil
}

// startAgain resumes the state that the previous execution left. Open partitions get their current order and answer with a
// report.
func (r *run) startAgain() dag.Decisions {
	decisions := r.core.Start()
	r.spread(r.fanOuts.Halt(decisions.Halt))
	r.spread(r.fanOuts.OrderAll())
	return decisions
}

// endsRun reports whether an event ends a run that has not begun.
func endsRun(e dag.Event) bool {
	switch e.(type) {
	case dag.Cancel, dag.Abort:
		return true
	}
	return false
}

// requestApproval makes the run wait for an approval, if it needs one.
func (r *run) requestApproval() {
	if !r.commands.RequestApproval() {
		return
	}
	r.status.SetApproval(r.commands.Approval)
	r.showState()
	r.log.Add(r.now(), v1.EventPaused, eventlog.WholeRun, "", 0, 0, "waits for the approval of an operator", eventlog.KeyReason.Of(v1.ReasonApproval))
	r.notifyOpen(v1.NotifyApproval, eventlog.WholeRun, "")
}

// failStart ends a run that cannot begin. It returns the error of the workflow. If a newer program has written the run, failStart
// panics, so that the run waits for such a program.
func (r *run) failStart(kind string, err error) error {
	if newer, ok := errors.AsType[*historyv1.NewerDataError](err); ok {
		panic(newer)
	}
	r.endAttributes(v1.RunFailed, err.Error())
	r.refuseUpdates(names.RunEndedError, command.ErrJustEnded)
	r.notifyUnbegun(&v1.Run{State: v1.RunFailed, Reason: kind, Error: err.Error()})
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, err)
}

// readInput loads and validates the input of the run.
func (r *run) readInput() error {
	whole := r.received
	if key := whole.GetStored(); key != "" {
		whole = &historyv1.RunInput{}
		if err := r.calls.MustNow("load its definition and input", names.LoadInputActivity, whole, key); err != nil {
			return fmt.Errorf("load the definition and input of the run: %w", err)
		}
		whole.State, whole.Chain = r.received.GetState(), cmp.Or(r.received.GetChain(), whole.GetChain())
	}
	var err error
	if r.Input, err = definition.Unpack(whole); err != nil {
		return err
	}
	if err := r.validateInput(); err != nil {
		return err
	}
	if r.Input.GetPartition() == nil {
		// Inputs of runs that a schedule or a person starts directly in Temporal lack their defaults.
		//workflowcheck:ignore (the inputs are looked at in the order of their names)
		if r.Input.Input, err = definition.Input(r.Input.GetDefinition(), r.Input.GetInput()); err != nil {
			return err
		}
	}
	if r.graph, err = dag.NewGraph(r.Input.GetDefinition(), r.Input.GetReferences()); err != nil {
		return err
	}
	r.RunID = cmp.Or(r.Input.GetPartition().GetRunId(), r.Self)
	r.Chain = chainOf(workflow.GetInfo(r.root), cmp.Or(r.Input.GetChain(), r.Input.GetPartition().GetChain()))
	if r.Input.GetPartition() == nil {
		r.selfChain = r.Chain
	}
	r.Home = names.Home(r.Self, r.selfChain)
	r.calls.Home = r.Home
	return nil
}

// validateInput returns an error if the input contains neither a definition nor a partition.
func (r *run) validateInput() error {
	if r.Input.GetDefinition() == nil && r.Input.GetPartition() == nil {
		return fmt.Errorf(`run %s was started without a definition; to start a stored workflow in Temporal, give {"workflow": "NAME", "input": {...}} as its input`, r.Self)
	}
	if dir := r.Input.GetDefinition().GetSource().GetDir(); dir != "" && r.Input.GetSource() == nil {
		return fmt.Errorf("the tasks start with the files of the folder %s, which only `switchyard run` and `switchyard submit` send", dir)
	}
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

// begin creates or restores the state of the run.
func (r *run) begin() error {
	now := r.now()
	switch {
	case r.Input.GetState() != nil:
		if err := r.restore(r.Input.GetState()); err != nil {
			return err
		}
	case r.Input.GetGeneration() > 0 && r.Input.GetPartition() == nil:
		if err := r.reopen(); err != nil {
			return err
		}
		r.log.Add(now, v1.EventSubmitted, eventlog.WholeRun, "", 0, 0, phrase.By(fmt.Sprintf("generation %d", r.Input.GetGeneration()), r.Input.GetBy()),
			eventlog.KeyGeneration.Of(r.Input.GetGeneration()), eventlog.KeyBy.Of(r.Input.GetBy()))
	case r.Input.GetPartition() != nil && r.Input.GetPartition().GetPrevious() != "":
		r.reopenPartition()
	default:
		r.beginNew()
	}
	r.flight.Learn(0, r.Input.GetPartition().GetDurationEstimate())
	r.fly(r.flight.StartRunDeadline(workflow.GetInfo(r.root).WorkflowStartTime, r.now()))
	r.watchParent()
	for _, a := range r.flight.Abandoned() {
		r.awaitAbandoned(a)
	}
	return nil
}

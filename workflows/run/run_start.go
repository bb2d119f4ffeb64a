package run

import (
	"cmp"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
	"switchyard/workflows/structs"
)

// start begins the run once it is approved, if it needs approval, and has its run slot; until then nothing starts. It returns
// the first decisions, which hold the end of the run if something ends it before.
func (r *run) start() dag.Decisions {
	if r.in.GetState() != nil {
		r.locks.restoreSlot()
		return r.startAgain()
	}
	early, over := r.awaitApproval()
	switch {
	case over:
		return r.core.Apply(early...)
	case !r.locks.askSlot():
		return r.core.Start(early...)
	}
	for !r.locks.hasSlot() {
		r.locks.send()
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, r.hasNews)
		r.gather()
		early = append(early, r.takeEvents()...)
		if slices.ContainsFunc(early, endsRun) {
			return r.core.Apply(early...)
		}
	}
	return r.core.Start(early...)
}

// startAgain resumes the state that the previous execution left. Open partitions get their current order and answer with a
// report.
func (r *run) startAgain() dag.Decisions {
	decisions := r.core.Start()
	r.partitions.halt(decisions.Halt)
	r.partitions.orderAll()
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

// awaitApproval waits until the run is approved, if it needs an approval. It returns the events that occurred meanwhile, and
// whether they end the run. An approval holds for all generations with the same definition; a rejection does not.
func (r *run) awaitApproval() (early []dag.Event, over bool) {
	approval, version := r.status.Run.GetApproval(), r.in.GetDefinitionVersion()
	isApproved := approval.GetState() == v1.ApprovalApproved && approval.GetDefinitionVersion() == version
	if !r.in.GetNeedsApproval() || r.in.GetPartition() != nil || isApproved {
		return nil, false
	}
	r.status.Run.Approval = &v1.RunApproval{State: v1.ApprovalPending, DefinitionVersion: version}
	r.view.showState()
	r.log.Add(r.now(), v1.EventPaused, eventlog.WholeRun, "", 0, 0, "waits for the approval of an operator", eventlog.KeyReason.Of(v1.ReasonApproval))
	for r.awaitsApproval() {
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, r.hasNews)
		r.gather()
		early = append(early, r.takeEvents()...)
		if slices.ContainsFunc(early, endsRun) {
			return early, true
		}
	}
	r.view.showState()
	return early, false
}

// failStart ends a run that cannot begin. It returns the error of the workflow.
func (r *run) failStart(kind string, err error) error {
	r.view.endAttributes(v1.RunFailed, err.Error())
	r.commands.refuseAll(names.RunEndedError, errJustEnded)
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, err)
}

// readInput loads and validates the input of the run.
func (r *run) readInput() error {
	whole := r.received
	if key := whole.GetStored(); key != "" {
		whole = &v1.RunInput{}
		if err := r.store.mustNow("load its definition and input", names.LoadInputActivity, whole, key); err != nil {
			return fmt.Errorf("load the definition and input of the run: %w", err)
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
	r.admitter.open()
	return nil
}

// validateInput returns an error if the input contains neither a definition nor a partition.
func (r *run) validateInput() error {
	if r.in.GetDefinition() == nil && r.in.GetPartition() == nil {
		return fmt.Errorf(`run %s was started without a definition; to start a stored workflow in Temporal, give {"workflow": "NAME", "input": {...}} as its input`, r.self)
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
	case r.in.GetState() != nil:
		if err := r.handover.restore(r.in.GetState()); err != nil {
			return err
		}
	case r.in.GetGeneration() > 0 && r.in.GetPartition() == nil:
		if err := r.handover.reopen(); err != nil {
			return err
		}
		r.log.Add(now, v1.EventSubmitted, eventlog.WholeRun, "", 0, 0, phrase.By(fmt.Sprintf("generation %d", r.in.GetGeneration()), r.in.GetBy()),
			eventlog.KeyGeneration.Of(r.in.GetGeneration()), eventlog.KeyBy.Of(r.in.GetBy()))
	case r.in.GetPartition() != nil && r.in.GetPartition().GetPrevious() != "":
		r.handover.reopenPartition()
	default:
		r.handover.beginNew()
	}
	r.status.WaitReason = r.admitter.waitReason
	r.admitter.learn(0, r.in.GetPartition().GetDurationEstimate())
	r.deadlines.startRun()
	r.reporter.watchParent()
	r.abandoned.awaitAll()
	return nil
}

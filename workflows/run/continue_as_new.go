package run

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/names"
)

// maxStateBytes is the largest input of the next execution that includes the state; a larger state goes through the store. As
// JSON it takes about twice as much.
const maxStateBytes = 128 << 10

// continueAsNew hands the state of a quiet run to a new execution, which restarts back-offs and repeats the requests that wait
// for a node. It returns nil if something has happened that the state does not include.
func (r *run) continueAsNew() error {
	if r.isOvertaken() {
		return nil
	}
	effects, left := r.flight.TakeBackRequests()
	if r.fly(effects); left || r.flight.OwesReleases() {
		return nil
	}
	r.awaitGivenUp()
	if r.tellNow() != nil || r.flushEvents() != nil || r.isOvertaken() {
		return nil
	}
	next := nextInput(r.received, r.Input, r.Chain)
	if proto.Size(next) > maxStateBytes/2 {
		var stored historyv1.RunInput
		if err := r.calls.MustNow("save its definition and input", names.SaveInputActivity, &stored, r.Home, next); err != nil {
			return unlessInterrupted("save the definition and input of the run", err)
		}
		stored.Chain = r.Chain
		next = &stored
	}
	if r.isOvertaken() {
		return nil
	}
	runState := r.snapshot()
	if proto.Size(runState)+proto.Size(next) > maxStateBytes {
		var stored historyv1.RunState
		err := r.calls.MustNow("save its state", names.SaveStateActivity, &stored, r.Home, r.Input.GetGeneration(), r.Execution, runState)
		if err != nil {
			return unlessInterrupted("save the state of the run", err)
		}
		if r.isOvertaken() {
			return nil
		}
		runState = &stored
	}
	// The code below yields, and the saved state includes no command that arrives meanwhile. So handlers must not wait for the
	// loop.
	r.refusal = refuse(names.RunContinuingError, errContinuing)
	r.calls.SetProblem("")
	r.showAttributes()
	r.calls.Charge(2 * maxStateBytes)
	r.awaitHandlers()
	if r.isOvertaken() {
		r.refusal = nil
		return nil
	}
	r.commands.Save(runState) // handlers have ended since the state was taken
	next.State = runState
	return workflow.NewContinueAsNewError(r.root, workflow.GetInfo(r.root).WorkflowType.Name, next)
}

// unlessInterrupted returns the error of a call of the store, or nil if the run was interrupted while it waited for the store.
func unlessInterrupted(what string, err error) error {
	if errors.Is(err, calls.ErrInterrupted) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// nextInput returns the input of the next execution without its state. received is the input of this execution, which refers to
// a stored one if that is large, and in is what it stands for.
func nextInput(received, in *historyv1.RunInput, chain string) *historyv1.RunInput {
	if key := received.GetStored(); key != "" {
		return &historyv1.RunInput{Stored: key, Generation: in.GetGeneration(), Chain: chain}
	}
	return &historyv1.RunInput{
		Definition:      received.GetDefinition(),
		Input:           received.GetInput(),
		References:      received.GetReferences(),
		Packed:          received.GetPacked(),
		Workflows:       received.GetWorkflows(),
		Options:         in.GetOptions(),
		Generation:      in.GetGeneration(),
		Partition:       in.GetPartition(),
		ParentRun:       in.GetParentRun(),
		ParentTask:      in.GetParentTask(),
		ParentFirst:     in.GetParentFirst(),
		Depth:           in.GetDepth(),
		By:              in.GetBy(),
		ByRole:          in.GetByRole(),
		NeedsApproval:   in.GetNeedsApproval(),
		SignedDecisions: in.GetSignedDecisions(),
		CacheScope:      in.GetCacheScope(),
		Batch:           in.GetBatch(),
		Chain:           chain,

		DefinitionVersion: in.GetDefinitionVersion(),
		HeldLocks:         in.GetHeldLocks(),
		Source:            in.GetSource(),
	}
}

// isOvertaken reports whether something has happened that the state to be handed over does not include. It leaves commands to
// the loop, because they change the state.
func (r *run) isOvertaken() bool {
	r.receive() // may yield
	return len(r.queue) > 0 || !r.isEmpty() || r.flight.HasLockRequests() || !r.isQuiet()
}

// isQuiet reports whether the next execution can take over everything in flight.
func (r *run) isQuiet() bool {
	return r.flight.IsQuiet() && !r.data.HasOpenRetries() && !r.fanOuts.AwaitsAnswers() && r.canReattachChildren()
}

// canReattachChildren reports whether the next execution of this run can reattach every child workflow.
func (r *run) canReattachChildren() bool {
	return r.children.CanDetach() && !r.flight.HasResults() && !r.fanOuts.OwesAnswers()
}

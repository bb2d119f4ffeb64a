package run

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
)

// handover takes over the state that the previous execution or generation left, and hands the state over to the next one.
type handover struct {
	*execution
}

// runState returns the state of the run for the next execution.
func (ho *handover) runState() *historyv1.RunState {
	c := ho.status.RunState(ho.core)
	c.Cancelled, c.Waiting = ho.core.Cancelled(), ho.waiting
	c.EventSlices, c.NextEvent = ho.log.StoredParts(), ho.log.Next()
	if ho.in.GetPartition() != nil {
		c.HaltReason = ho.core.GroupHalted(0)
	}
	if first := ho.core.FirstFailure(); first >= 0 {
		c.FirstFailure = ho.graph.Name(first)
	}
	if a := ho.core.Aborted(); a != (dag.Abort{}) {
		c.Abort = &v1.Run{State: a.State, Reason: a.Reason, Error: a.Error}
	}
	ho.flight.Save(c)
	ho.fanOuts.Save(c)
	ho.commands.Save(c)
	return c
}

// nextInput returns the input of the next execution without its state. A large input is stored, and the returned one refers to
// it. nextInput returns nil if the run was interrupted while it waited for the store.
func (ho *handover) nextInput() (*historyv1.RunInput, error) {
	if key := ho.received.GetStored(); key != "" {
		return &historyv1.RunInput{Stored: key, Generation: ho.in.GetGeneration(), Chain: ho.chain}, nil
	}
	next := &historyv1.RunInput{
		Definition:      ho.received.GetDefinition(),
		Input:           ho.received.GetInput(),
		References:      ho.received.GetReferences(),
		Packed:          ho.received.GetPacked(),
		Workflows:       ho.received.GetWorkflows(),
		Options:         ho.in.GetOptions(),
		Generation:      ho.in.GetGeneration(),
		Partition:       ho.in.GetPartition(),
		ParentRun:       ho.in.GetParentRun(),
		ParentTask:      ho.in.GetParentTask(),
		ParentFirst:     ho.in.GetParentFirst(),
		Depth:           ho.in.GetDepth(),
		By:              ho.in.GetBy(),
		ByRole:          ho.in.GetByRole(),
		NeedsApproval:   ho.in.GetNeedsApproval(),
		SignedDecisions: ho.in.GetSignedDecisions(),
		CacheScope:      ho.in.GetCacheScope(),
		Batch:           ho.in.GetBatch(),
		Chain:           ho.chain,

		DefinitionVersion: ho.in.GetDefinitionVersion(),
		HeldLocks:         ho.in.GetHeldLocks(),
	}
	if proto.Size(next) <= maxStateBytes/2 {
		return next, nil
	}
	var stored historyv1.RunInput
	err := ho.calls.MustNow("save its definition and input", names.SaveInputActivity, &stored, ho.home(), next)
	if errors.Is(err, calls.ErrInterrupted) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("save the definition and input of the run: %w", err)
	}
	stored.Chain = ho.chain
	return &stored, nil
}

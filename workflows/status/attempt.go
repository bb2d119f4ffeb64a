package status

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// AttemptEnd is how a dispatch of a task ended.
type AttemptEnd struct {
	Claim, Number int32 // of the attempt
	// Node is where it was sent, with the GPUs and the NUMA node, if any, that it was given there.
	Node           string
	GPUs           []int32
	NUMANode       *int32
	Ended          dag.Ended // as the core learns of it
	Response       *v1.ExecuteResponse
	Outcome        string // what it says about the node, one of v1.Outcome..., or "" for nothing
	Unacknowledged bool   // how the attempt ended is not known, if it did
	Continues      bool   // the attempt runs outside of the nodes, and continues there if it was moved
	// Checkpoint is what the attempt has left in $SWITCHYARD_CHECKPOINT, or nil if it has left nothing new.
	Checkpoint *v1.Checkpoint
}

// attempt returns the attempt as it is shown.
func (d AttemptEnd) attempt(now time.Time) *v1.Attempt {
	a := &v1.Attempt{
		Attempt: d.Number, Claim: d.Claim, Node: cmp.Or(d.Ended.Node, d.Node),
		State: d.Ended.State, Reason: d.Ended.Reason, Error: d.Ended.Error, ExitCode: d.Ended.ExitCode,
		AssignedAt: d.Response.GetAssignedAt(), StartedAt: d.Response.GetStartedAt(), CompletedAt: d.Response.GetCompletedAt(),
		Gpus: d.GPUs, NumaNode: d.NUMANode, Container: d.Response.GetResult().GetContainer(),
	}
	if a.Node != d.Node { // the answer is the record of another attempt
		a.Gpus, a.NumaNode = nil, nil
	}
	if a.CompletedAt == nil {
		a.CompletedAt = timestamppb.New(now)
	}
	return a
}

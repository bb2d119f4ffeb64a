package status

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// AttemptEnd is the end of a task's dispatch.
type AttemptEnd struct {
	Claim, Number int32 // claim and attempt number
	// Node is the node that it was sent to. GPUs and NUMANode are what it was given there, if anything.
	Node           string
	GPUs           []int32
	NUMANode       *int32
	Ended          dag.Ended // as the core receives it
	Response       *v1.ExecuteResponse
	Outcome        string // what it implies about the node, one of v1.Outcome..., or "" if nothing
	Unacknowledged bool   // it is unknown whether and how the attempt ended
	Continues      bool   // the attempt runs outside the nodes, and continues there if it was moved
	// Checkpoint is what the attempt left in $SWITCHYARD_CHECKPOINT, or nil if nothing new.
	Checkpoint *v1.Checkpoint
}

// attempt returns the message for the attempt.
func (d AttemptEnd) attempt(now time.Time) *v1.Attempt {
	a := &v1.Attempt{
		Attempt: d.Number, Claim: d.Claim, Node: cmp.Or(d.Ended.Node, d.Node),
		State: d.Ended.State, Reason: d.Ended.Reason, Error: d.Ended.Error, ExitCode: d.Ended.ExitCode,
		AssignedAt: d.Response.GetAssignedAt(), StartedAt: d.Response.GetStartedAt(), CompletedAt: d.Response.GetCompletedAt(),
		Gpus: d.GPUs, NumaNode: d.NUMANode, Container: d.Response.GetResult().GetContainer(),
	}
	if a.Node != d.Node { // the answer is the record of an attempt on another node
		a.Gpus, a.NumaNode = nil, nil
	}
	if a.CompletedAt == nil {
		a.CompletedAt = timestamppb.New(now)
	}
	return a
}

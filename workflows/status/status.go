package status

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/structs"
)

// Status is a run as people see it. Messages are created on request. Data that they share with the status is never modified,
// only replaced.
//
// The tasks are in its embedded parts. Each part embeds the next: dispatches follows the attempts of a task, shown derives the
// state that people see, and table holds the entries.
type Status struct {
	*dispatches
	// Run is the run without its tasks.
	Run *v1.Run
	// ContextRevision is the revision of the newest change of the context.
	ContextRevision int64
	// PausedBy is who has paused the run, and why, or "" if it is not paused or that is unknown.
	PausedBy string
	// SlotWait is why the run waits for its run slot, or "" if it does not wait.
	SlotWait string
}

// New returns the status of a run that is about to begin. The status shows what the records say, and never changes them.
func New(id string, in *v1.RunInput, graph *dag.Graph, records *flight.Records, created time.Time) *Status {
	tasks := newTable(in, graph, records)
	return &Status{
		dispatches: &dispatches{shown: &shown{table: tasks}},
		Run: &v1.Run{
			Id:         id,
			Name:       in.GetDefinition().GetName(),
			State:      v1.RunRunning,
			CreatedAt:  timestamppb.New(created),
			Context:    structs.Clone(in.GetDefinition().GetContext()),
			Input:      structs.Clone(in.GetInput()),
			Generation: in.GetGeneration(),

			SubmittedBy: in.GetBy(),
			Batch:       in.GetBatch(),
		},
		ContextRevision: tasks.Revision,
	}
}

// SetContext shows a new context.
func (s *Status) SetContext(context *structpb.Struct) {
	s.Run.Context = context
	s.Revision++
	s.ContextRevision = s.Revision
}

// EndRun sets the final state of a run and the time of its end.
func EndRun(run *v1.Run, end *dag.End, now time.Time) {
	run.State, run.Reason, run.Error, run.Problem = end.State, end.Reason, end.Error, ""
	run.CompletedAt = timestamppb.New(now)
}

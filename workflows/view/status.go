package view

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/structs"
)

// Status is a run as people see it. Messages are created on request. Data that they share with the status is never modified,
// only replaced.
//
// The tasks are in its embedded parts. Each part embeds the next: shown derives the state that people see, and table holds the
// entries.
type Status struct {
	*shown
	run             *v1.Run // without its tasks
	contextRevision int64   // of the newest change of the context
	pausedBy        string  // who has paused the run, and why, or "" if it is not paused or that is unknown
	slotWait        string  // why the run waits for its run slot, or "" if it does not wait
}

// New returns the status of a run that is about to begin. The status shows what the records say, and never changes them. It adds
// the events of tasks to the log of the run.
func New(id string, in *historyv1.RunInput, graph *dag.Graph, units *flight.State, records *flight.Records, log *eventlog.Log, created time.Time) *Status {
	tasks := newTable(in, graph, units, records, log)
	return &Status{
		shown: &shown{table: tasks},
		run: &v1.Run{
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
		contextRevision: tasks.revision,
	}
}

// SetContext shows a new context.
func (s *Status) SetContext(context *structpb.Struct) {
	s.run.Context = context
	s.revision++
	s.contextRevision = s.revision
}

// SetRunState shows the state of the open run.
func (s *Status) SetRunState(state string) { s.run.State = state }

// SetApproval shows the approval of the run, or that it waits for one.
func (s *Status) SetApproval(approval *v1.RunApproval) { s.run.Approval = approval }

// SetPausedBy shows who has paused the run, and why. by is "" if the run is not paused or if that is unknown.
func (s *Status) SetPausedBy(by string) { s.pausedBy = by }

// SetSlotWait shows why the run waits for its run slot, or that it does not if why is "".
func (s *Status) SetSlotWait(why string) { s.slotWait = why }

// SetProblem shows why the run cannot continue, or that it can if problem is "".
func (s *Status) SetProblem(problem string) { s.run.Problem = problem }

// End shows the end of the run.
func (s *Status) End(end *dag.End, now time.Time) { endRun(s.run, end, now) }

// endRun sets the final state of a run and the time of its end.
func endRun(run *v1.Run, end *dag.End, now time.Time) {
	run.State, run.Reason, run.Error, run.Problem = end.State, end.Reason, end.Error, ""
	run.CompletedAt = timestamppb.New(now)
}

package view

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/structs"
)

// Status is a run as people see it. Messages are created on request. Data that they share with the status is never modified,
// only replaced.
type Status struct {
	log      *eventlog.Log // of the run
	graph    *dag.Graph
	core     *dag.State
	units    *flight.State
	records  *flight.Records
	revision int64   // of the newest change
	entries  []entry // the tasks first and then the instances, under the same indices as the core
	order    order

	run             *v1.Run // without its tasks
	contextRevision int64   // of the newest change of the context
	pausedBy        string  // who has paused the run, and why, or "" if it is not paused or that is unknown
	slotWait        string  // why the run waits for its run slot, or "" if it does not wait
}

// entry is what is shown of a task or an instance, beside its records.
type entry struct {
	state string // in the core, and the claim, when its newest event was logged
	claim int32

	assignedAt, startedAt, completedAt, scheduledAfter *timestamppb.Timestamp
	expandedAt                                         *timestamppb.Timestamp // when its instances were created; nil if it has none
	attempts                                           []*v1.Attempt

	ended       *v1.Attempt             // ended dispatch, until the core has processed it
	agentEvents []*historyv1.AgentEvent // of the ended dispatch, until they are logged
	steeredBy   string                  // who requeued, cancelled or killed it, until that event is logged

	revision int64
}

// New returns the status of a run that is about to begin. The status shows what the core and the records say, and never changes
// them. It adds the events of tasks to the log of the run.
func New(id string, in *historyv1.RunInput, graph *dag.Graph, core *dag.State, units *flight.State, records *flight.Records, log *eventlog.Log, created time.Time) *Status {
	s := &Status{
		log: log, graph: graph, core: core, units: units, records: records, entries: make([]entry, 0, core.Len()), order: newOrder(),
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
			Source:      definition.Source(in),
		},
	}
	s.AddInstances()
	s.contextRevision = s.revision
	return s
}

// AddInstances adds the instances of the core that the status does not have yet.
func (s *Status) AddInstances() {
	for i := len(s.entries); i < s.core.Len(); i++ {
		s.entries = append(s.entries, entry{state: v1.TaskPending})
		s.Touch(i)
	}
}

// Touch shows task i again, because something about it has changed. For an instance that is not shown, its task is shown,
// because the counts of the task change.
func (s *Status) Touch(i int) {
	if s.core.Number(i) >= shownInstances {
		i = s.core.Group(i)
	}
	s.revision++
	s.entries[i].revision = s.revision
	s.order.toEnd(i)
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

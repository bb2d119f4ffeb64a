package runevents

import (
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Subject holds the facts about a run that are needed to read its events.
type Subject struct {
	id, home   string
	generation int32
	// ended reports whether the run has ended, and outside whether it was closed from outside.
	ended, outside bool
	// stuck reports whether the run makes no progress.
	stuck bool
	// partitioned reports whether children of the run hold instances of a task.
	partitioned bool
}

// SubjectOf returns the subject for the run in a view.
func SubjectOf(v *runview.View) Subject {
	return Subject{
		id: v.Run.GetId(), home: v.Home(), generation: v.Run.GetGeneration(),
		ended: v1.IsRunTerminal(v.Run.GetState()), outside: v1.IsEndedFromOutside(v.Run.GetReason()),
		stuck: v.Run.GetProblem() != "", partitioned: v.HasPartitions(),
	}
}

// isSilent reports whether the workflow of the newest generation may fail to answer.
func (s Subject) isSilent() bool { return s.outside || s.stuck }

// source returns the source of the events of the run itself in a generation.
func (s Subject) source(generation int32, wanted func(*v1.Event) bool) *eventSource {
	current := generation == s.generation
	return &eventSource{
		id: s.id, home: s.home, generation: generation, wanted: wanted,
		live: current && (!s.ended || s.outside), silent: current && s.isSilent(),
	}
}

// childSource returns the source of the events of the instances that a child carries. The events of the task as a whole
// belong to the run.
func (s Subject) childSource(p *historyv1.PartitionReport, task string) *eventSource {
	id := runview.PartID(s.id, p)
	return &eventSource{
		id: id, home: id, generation: p.GetGeneration(),
		live: !p.GetOver(), silent: s.ended || p.GetGeneration() == s.generation && s.isSilent(),
		wanted: func(e *v1.Event) bool {
			_, _, ok := names.ParseInstanceName(e.GetTask())
			return ok && (task == "" || concerns(e, task))
		},
	}
}

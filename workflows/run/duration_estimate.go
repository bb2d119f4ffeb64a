package run

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
)

// What a run has learned of the instances of a task is worth a second or two to whoever continues with others of them:
// the next partition, and the next execution.

// paceOf is what has been learned of the instances of a task; nil: nothing.
func (r *run) paceOf(task int) *v1.Pace {
	p := r.admission.DurationEstimate(task)
	if p.Instance <= 0 {
		return nil
	}
	return &v1.Pace{Instance: durationpb.New(p.Instance), Batch: int32(p.Batch)}
}

// learn takes over what others have learned of the instances of a task.
func (r *run) learn(task int, p *v1.Pace) {
	if p.GetInstance().AsDuration() > 0 {
		r.admission.Learn(task, admission.DurationEstimate{Instance: p.GetInstance().AsDuration(), Batch: int(p.GetBatch())})
	}
}

// durationEstimate is what the partitions have learned, the newest of them first; nil: nothing.
func (m *partitionedFanOut) durationEstimate() *v1.Pace {
	for k := len(m.partitions) - 1; k >= 0; k-- {
		if p := m.partitions[k].GetPace(); p != nil {
			return p
		}
	}
	return nil
}

// worked returns how many of the attempts that have ended say when they started and ended, and how long they took
// together. Only their nodes' clocks count: a wait for the server or for this workflow would make a unit look long, and
// smaller ones wait more often.
func worked(ends []dispatchEnd) (n int, took time.Duration) {
	for _, end := range ends {
		if from, to := end.res.GetStartedAt(), end.res.GetCompletedAt(); from != nil && to != nil {
			n++
			took += to.AsTime().Sub(from.AsTime())
		}
	}
	return n, took
}

package run

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/core/flight"
)

// Measuring how long the instances of a task take costs a second or two. The next partition and the next execution reuse the
// estimate.

// durationEstimateOf returns the duration estimate for the instances of a task, or nil if there is none.
func (ad *admitter) durationEstimateOf(task int) *v1.DurationEstimate {
	p := ad.queue.DurationEstimate(task)
	if p.Instance <= 0 {
		return nil
	}
	return &v1.DurationEstimate{Instance: durationpb.New(p.Instance), Batch: int32(p.Batch)}
}

// saveTasks hands the duration estimates over to the next execution.
func (ad *admitter) saveTasks(c *v1.RunState) {
	for i := range ad.graph.Len() {
		if t := c.Tasks[ad.graph.Name(i)]; t != nil && ad.graph.FansOut(i) {
			t.DurationEstimate = ad.durationEstimateOf(i)
		}
	}
}

// restoreTask restores the duration estimate of the previous execution.
func (ad *admitter) restoreTask(i int, t *v1.TaskState) { ad.learn(i, t.GetDurationEstimate()) }

// learn takes over a duration estimate that another partition or execution has made for the instances of a task.
func (ad *admitter) learn(task int, p *v1.DurationEstimate) {
	if p.GetInstance().AsDuration() > 0 {
		ad.queue.Learn(task, admission.DurationEstimate{Instance: p.GetInstance().AsDuration(), Batch: int(p.GetBatch())})
	}
}

// totalWork returns the number of ended attempts that report both their start and their end, and their total duration. It uses
// only the clocks of the nodes: waits for the server or for this workflow would make units look long, and small units wait more
// often.
func totalWork(ends []flight.End) (n int, took time.Duration) {
	for _, end := range ends {
		if from, to := end.Response.GetStartedAt(), end.Response.GetCompletedAt(); from != nil && to != nil {
			n++
			took += to.AsTime().Sub(from.AsTime())
		}
	}
	return n, took
}

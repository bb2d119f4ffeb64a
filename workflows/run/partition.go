package run

import (
	"cmp"
	"maps"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// reportEvery is the shortest time between two reports of a partition. The first failure and the end are reported at once.
const reportEvery = time.Second

// runGone is the reason with which a child workflow is cancelled when its run has ended without it.
const runGone = "cancelled: the run that started it has ended"

// reports is the reporting state of a partition's child.
type reports struct {
	at       time.Time
	counts   map[string]int32
	failed   bool          // a failure has been reported
	wanted   bool          // the run has asked for a report
	timed    bool          // a timer is running
	asks     []*contextAsk // in ascending order of their numbers
	number   int64         // number of the newest ask
	revision int64
}

// newCore returns the state of a run that begins.
func (r *run) newCore() *dag.State {
	if claim := r.in.GetPartition().GetClaim(); claim > 0 {
		return dag.Restore(r.graph, []dag.Record{{State: v1.TaskPending, ExitCode: -1, Claim: claim}})
	}
	return dag.New(r.graph)
}

// reopenPartition continues from the state that the partition left in a previous generation. Without that state, all instances
// run again.
func (r *run) reopenPartition() {
	part, current := r.in.GetPartition(), r.context
	before, _ := names.ParseFanOutID(part.GetPrevious())
	var runState v1.RunState
	err := r.mustNow("load the state of the part in the generation before", names.ReopenActivity, &runState,
		&v1.ReopenRequest{RunId: part.GetPrevious(), Execution: r.execution(), Generation: before.Generation + 1})
	if err == nil {
		err = r.restore(&runState)
	}
	if err != nil {
		workflow.GetLogger(r.ctx).Warn("what has completed of the part is done again", "error", err)
		r.beginNew()
		return
	}
	r.context = current
	r.status.SetContext(current)
	r.log = r.status.Log
	if part.GetPrevious() != r.self {
		r.log.ContinueFrom(0, 0)
	}
	if part.GetPaused() {
		r.admission.Pause()
	}
}

// receiveCount sets the total number of the task's instances, which expressions in a partition see.
func (r *run) receiveCount() {
	if part := r.in.GetPartition(); part != nil {
		if f := r.status.FanOut(0); f != nil {
			f.Total = int(part.GetCount())
		}
	}
}

// report sends the run the state of the partition if it has changed.
func (r *run) report() {
	if r.in.GetPartition() == nil || r.status.FanOut(0) == nil {
		return
	}
	f := r.status.FanOut(0)
	s, now := &r.reports, workflow.Now(r.ctx)
	failed := s.failed || r.failedInstance() >= 0
	switch wait := reportEvery - now.Sub(s.at); {
	//workflowcheck:ignore (whether two maps are the same does not depend on the order)
	case !s.wanted && !s.hasUnsent() && maps.Equal(s.counts, f.Counts):
	case s.wanted || failed && !s.failed || wait <= 0 || r.draining && s.hasUnsent():
		s.failed = failed
		r.sendReport()
	case !s.timed:
		s.timed = true
		r.after(wait, "report", func() { s.timed = false })
	}
}

// sendReport sends the run the state of the partition.
func (r *run) sendReport() {
	p := r.partitionReport()
	updates, bytes := r.reports.takeUnsent()
	p.ContextUpdates = updates
	r.pending.Watch(r.signal(r.id, names.PartitionReportSignal, p, bytes), func(f workflow.Future) {
		if f.Get(r.ctx, nil) != nil {
			r.loseRun()
		}
	})
}

// failedInstance returns the first failed instance, or -1 if none has failed.
func (r *run) failedInstance() int {
	f := r.status.FanOut(0)
	//workflowcheck:ignore (looks whether there is one)
	for state, n := range f.Counts {
		if n > 0 && v1.IsTaskFailure(state) {
			for i := f.First; i < f.First+f.Count; i++ {
				if v1.IsTaskFailure(r.status.State(i)) {
					return i
				}
			}
		}
	}
	return -1
}

// partitionReport returns the state of the partition.
func (r *run) partitionReport() *v1.PartitionReport {
	f, s, part := r.status.FanOut(0), &r.reports, r.in.GetPartition()
	now := workflow.Now(r.ctx)
	s.at, s.wanted, s.counts = now, false, maps.Clone(f.Counts)
	// Revisions also increase from one execution to the next.
	s.revision = max(s.revision+1, now.UnixMicro())
	p := &v1.PartitionReport{
		Task: part.GetTask(), From: part.GetFrom(), Generation: part.GetGeneration(), Chain: part.GetChain(), Revision: s.revision, Counts: s.counts,
		DurationEstimate: r.durationEstimateOf(0), Nodes: r.attributes.wanted.Nodes,
	}
	if i := r.failedInstance(); i >= 0 {
		p.Failure = phrase.Because(r.status.Name(i), r.status.Text(i))
	}
	return p
}

// lastReport sends the run the end of the partition. It returns when the run has received the report or has ended.
func (r *run) lastReport() {
	if r.in.GetPartition() == nil {
		return
	}
	p, rec := r.partitionReport(), r.core.Task(0)
	p.Over, p.State, p.ExitCode = true, rec.State, rec.ExitCode
	if f := r.status.FanOut(0); f != nil {
		collected, err := r.collect(0, f)
		if err != nil {
			workflow.GetLogger(r.ctx).Warn("the outputs of the part are not kept", "error", err)
		}
		p.Outputs = collected.GetOutputs().GetKey()
	}
	if err := r.signal(r.id, names.PartitionReportSignal, p, 0).Get(r.ctx, nil); err != nil {
		workflow.GetLogger(r.ctx).Warn("the run of the partition has ended", "error", err)
	}
}

// takeOrders carries out the orders of the run to this partition. Orders sent to a run are dropped.
func (r *run) takeOrders() {
	orders := workflow.GetSignalChannel(r.root, names.OrderSignal)
	for orders.Len() > 0 {
		var o v1.PartitionOrder
		if orders.ReceiveAsync(&o) && r.in.GetPartition() != nil {
			r.takeOrder(&o)
		}
	}
}

func (r *run) takeOrder(o *v1.PartitionOrder) {
	r.reports.wanted = true
	switch {
	case o.GetKilled() != "":
		r.events = append(r.events, dag.Kill{Task: 0, Reason: o.GetKilled()})
		return
	case o.GetCancel():
		r.cancel("", o.GetCancelReason())
		return
	case o.GetPaused() && !r.admission.Paused():
		r.pause(&v1.RunCommand{})
	case !o.GetPaused() && r.admission.Paused():
		r.resume(&v1.RunCommand{})
	}
	// An earlier order of this round may not have reached the core yet, so every order is passed on.
	if o.GetHalt() {
		r.events = append(r.events, dag.HaltGroup{Task: 0, Reason: cmp.Or(o.GetHaltReason(), v1.ReasonHalt)})
	} else {
		r.events = append(r.events, dag.ResumeGroup{Task: 0})
	}
}

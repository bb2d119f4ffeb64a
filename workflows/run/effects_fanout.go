package run

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/child"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// spread carries out effects of the large fan-outs, in their order.
func (r *run) spread(effects []fanout.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case fanout.Raise:
			r.raise(e.Event)
		case fanout.Wake:
			r.wake()
		case fanout.LimitChildren:
			r.flight.SetChildren(e.Open)
		case fanout.Settle:
			asked := r.settling[e.Ask]
			delete(r.settling, e.Ask)
			switch asked := asked.(type) {
			case flight.Settle:
				r.fly(r.flight.Settled(asked.End, e.Refusal))
			case flight.SettleCached:
				r.fly(r.flight.CachedSettled(asked, e.Refusal))
			}
		case fanout.OpenChild:
			summary := fmt.Sprintf("%s[%d] to [%d] of %s", r.graph.Name(e.Opening.Task), e.Opening.From, e.Opening.To-1, r.id)
			r.children.Want(child.Owner{Partition: e.Child}, &historyv1.ChildRequest{Id: e.ID, Input: e.Input}, summary)
		case fanout.Reattach:
			r.carryOutChild(r.children.Reattach(child.Owner{Partition: e.Child}, e.ID, e.First, r.now()))
		case fanout.CancelChild:
			r.carryOutChild(r.children.Cancel(child.Owner{Partition: e.Child}, ""))
		case fanout.AwaitClose:
			r.children.Closing(child.Owner{Partition: e.Child})
		case fanout.SendOrder:
			e.Order.Paused = r.flight.IsPaused()
			r.notifyPartition(e.ID, names.OrderSignal, e.Order, 0, func() {})
		case fanout.SendAnswer:
			r.notifyPartition(e.ID, names.ContextSignal, e.Answer, e.Bytes, r.fanOuts.AnswerSent)
		case fanout.SendReport:
			r.calls.Watch(r.calls.Signal(r.id, names.PartitionReportSignal, e.Report, e.Bytes), func(f workflow.Future) {
				if f.Get(r.ctx, nil) != nil {
					r.loseRun()
				}
			})
		case fanout.ReportLater:
			r.calls.After(e.Delay, "report", r.fanOuts.ReportDue)
		case fanout.Cancel:
			r.carryOutCommand(r.commands.Cancel("", e.Reason))
		case fanout.Pause:
			r.carryOutCommand(r.commands.SetPaused(true, nil))
		case fanout.Resume:
			r.carryOutCommand(r.commands.SetPaused(false, nil))
		case fanout.ShowCounts:
			r.status.SetCounts(e.Task, e.Total, e.Counts)
		case fanout.ShowWait:
			r.status.SetWaitReason(e.Task, e.Text)
		case fanout.ShowNode:
			r.wanted.AddNode(e.Node)
		case fanout.ShowContext:
			r.status.SetContext(e.Context)
		}
	}
}

// notifyPartition sends a partition a signal and calls sent when it has arrived, or the partition has ended.
func (r *run) notifyPartition(id, signal string, arg any, written int, sent func()) {
	r.calls.Watch(r.calls.Signal(id, signal, arg, written), func(f workflow.Future) {
		sent()
		if err := f.Get(r.ctx, nil); err != nil {
			workflow.GetLogger(r.ctx).Debug("could not signal a partition", "partition", id, "signal", signal, "error", err)
		}
	})
}

// openPartitions opens as many partitions of the large fan-outs as the limits allow.
func (r *run) openPartitions() {
	if r.flight.HasAbandoned() {
		return
	}
	for _, i := range r.fanOuts.Running() {
		for from := 0; ; {
			o, effects := r.fanOuts.Next(i, from, r.flight.FreeChildren(), r.draining)
			r.spread(effects)
			if o == nil {
				break
			}
			input, err := r.partitionInput(o)
			if err != nil {
				r.wake()
				break
			}
			r.spread(r.fanOuts.Open(o, input))
			from = o.To
		}
	}
}

// partitionInput returns the input of a partition's child: the task without its dependencies and conditions. The only error is
// calls.ErrInterrupted.
func (r *run) partitionInput(o *fanout.Opening) (*historyv1.RunInput, error) {
	name, def := r.graph.Name(o.Task), r.in.GetDefinition()
	refs := r.in.GetReferences()[name]
	task := proto.CloneOf(r.core.Definition(o.Task))
	task.DependsOn, task.Condition, task.When, task.OnFailure, task.Deadline, task.ContinueOnError = nil, "", "", "", "", false
	part := o.Partition
	part.Items, part.Paused, part.Views = r.records.Of(o.Task).Items, r.flight.IsPaused(), map[string]*historyv1.ParentView{}
	part.Ends = r.ancestorEnds(o.Task)
	var err error
	if part.Parents, err = r.parentOutputs(o.Task); err != nil {
		return nil, err
	}
	if err := r.addViews(part.Views, slices.Concat(refs.GetTemplates(), refs.GetCache())); err != nil {
		return nil, err
	}
	return &historyv1.RunInput{
		Definition: &v1.Definition{Name: def.GetName(), Context: r.fanOuts.Context(), Tasks: map[string]*v1.TaskDefinition{name: task}},
		Input:      r.in.GetInput(), References: map[string]*historyv1.ConditionReferences{name: refs},
		Options: r.in.GetOptions(), Generation: r.in.GetGeneration(), Partition: part, Rerun: o.Rerun, Retry: o.Requeued,
		ParentRun: r.in.GetParentRun(), ParentTask: r.in.GetParentTask(), Depth: r.in.GetDepth(),
		ParentFirst: r.first, ByRole: r.in.GetByRole(), SignedDecisions: r.in.GetSignedDecisions(), CacheScope: r.cacheScope(),
		Workflows: r.in.GetWorkflows(), HeldLocks: r.flight.HeldBy(nil),
	}, nil
}

// partitionFacts returns what a report of this partition tells.
func (r *run) partitionFacts() fanout.Facts {
	return fanout.Facts{Counts: r.status.ShownCounts(0), DurationEstimate: r.flight.DurationEstimate(0), Nodes: r.wanted.Nodes}
}

// report sends the run the state of this partition if it has changed.
func (r *run) report() {
	if r.in.GetPartition() != nil {
		r.spread(r.fanOuts.Report(r.now(), r.partitionFacts(), r.draining))
	}
}

// lastReport sends the run the end of this partition. It returns when the run has received the report or has ended.
func (r *run) lastReport() {
	if r.in.GetPartition() == nil {
		return
	}
	p := r.fanOuts.LastReport(r.now(), r.partitionFacts())
	if _, count := r.core.Instances(0); count > 0 {
		collected, err := r.collect(0)
		if err != nil {
			workflow.GetLogger(r.ctx).Warn("could not keep the outputs of the partition", "error", err)
		}
		p.Outputs = collected.GetOutputs().GetKey()
	}
	if err := r.calls.Signal(r.id, names.PartitionReportSignal, p, 0).Get(r.ctx, nil); err != nil {
		workflow.GetLogger(r.ctx).Warn("the run of the partition has ended", "error", err)
	}
}

// loseRun ends a child workflow whose parent run has ended without it.
func (r *run) loseRun() { r.spread(r.fanOuts.RunEnded()) }

package run

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/child"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dataflow"
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
		case fanout.AskItems:
			r.data.Ask(dataflow.Question{Task: e.Task, Kind: dataflow.Items})
		case fanout.AskCount:
			r.data.Ask(dataflow.Question{Task: e.Task, Kind: dataflow.Count})
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
			summary := fmt.Sprintf("%s[%d] to [%d] of %s", r.graph.Name(e.Opening.Task), e.Opening.From, e.Opening.To-1, r.RunID)
			r.children.Want(child.Owner{Partition: e.Child}, &historyv1.ChildRequest{Id: e.ID, Input: e.Input}, summary)
		case fanout.Reattach:
			r.carryOutChild(r.children.Reattach(child.Owner{Partition: e.Child}, e.ID, e.First, r.now()))
		case fanout.CancelChild:
			r.carryOutChild(r.children.Cancel(child.Owner{Partition: e.Child}, "", false))
		case fanout.AwaitClose:
			r.children.Closing(child.Owner{Partition: e.Child})
		case fanout.SendOrder:
			e.Order.Paused = r.flight.IsPaused()
			r.notifyPartition(e.ID, names.OrderSignal, e.Order, 0, func() {})
		case fanout.SendAnswer:
			r.notifyPartition(e.ID, names.ContextSignal, e.Answer, e.Bytes, r.fanOuts.AnswerSent)
		case fanout.SendReport:
			r.calls.Watch(r.calls.Signal(r.RunID, names.PartitionReportSignal, e.Report, e.Bytes), func(f workflow.Future) {
				if f.Get(r.ctx, nil) != nil {
					r.loseRun()
				}
			})
		case fanout.ReportLater:
			r.calls.After(e.Delay, "report", r.fanOuts.ReportDue)
		case fanout.Cancel:
			effects, _ := r.commands.Cancel(command.Cancellation{Reason: e.Reason})
			r.carryOutCommand(effects)
		case fanout.Pause:
			r.carryOutCommand(r.commands.SetPaused(true, nil))
		case fanout.Resume:
			r.carryOutCommand(r.commands.SetPaused(false, nil))
		case fanout.Show:
			r.status.Touch(e.Task)
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
			input, err := build(r, func(d *dataflow.Draft) (*historyv1.RunInput, *dataflow.Call) { return d.PartitionInput(o) })
			if err != nil {
				r.wake()
				break
			}
			r.spread(r.fanOuts.Open(o, input))
			from = o.To
		}
	}
}

// partitionFacts returns what a report of this partition tells.
func (r *run) partitionFacts() fanout.Facts {
	return fanout.Facts{Counts: r.flight.InstanceCounts(0), DurationEstimate: r.flight.DurationEstimate(0), Nodes: r.wanted.Nodes, LeftOn: r.flight.LeftOn()}
}

// report sends the run the state of this partition if it has changed.
func (r *run) report() {
	if r.Input.GetPartition() != nil {
		r.spread(r.fanOuts.Report(r.now(), r.partitionFacts(), r.draining))
	}
}

// lastReport sends the run the end of this partition. It returns when the run has received the report or has ended.
func (r *run) lastReport() {
	if r.Input.GetPartition() == nil {
		return
	}
	p := r.fanOuts.LastReport(r.now(), r.partitionFacts())
	if _, count := r.core.Instances(0); count > 0 {
		// Nothing interrupts a run that has ended.
		outputs, _ := build(r, func(d *dataflow.Draft) (*historyv1.FanOutView, *dataflow.Call) { return d.Outputs(0) })
		p.Outputs = outputs.GetOutputs().GetKey()
	}
	if err := r.calls.Signal(r.RunID, names.PartitionReportSignal, p, 0).Get(r.ctx, nil); err != nil {
		workflow.GetLogger(r.ctx).Warn("the run of the partition has ended", "error", err)
	}
}

// loseRun ends a child workflow whose parent run has ended without it.
func (r *run) loseRun() { r.spread(r.fanOuts.RunEnded()) }

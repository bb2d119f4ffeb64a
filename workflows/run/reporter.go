package run

import (
	"cmp"
	"maps"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// reportEvery is the shortest time between two reports of a partition. The first failure and the end are reported at once.
const reportEvery = time.Second

// runGone is the reason with which a child workflow is cancelled when its run has ended without it.
const runGone = "cancelled: the run that started it has ended"

// reporter links a partition with its run: it decides when the partition reports to the run, and carries out the run's orders.
// It also ends a child workflow whose parent has ended without it.
type reporter struct {
	*execution
	ancestry reporterAncestry
	children reporterChildren
	commands reporterCommands
	contexts reporterContexts
	controls reporterControls
	outbox   reporterOutbox
	view     reporterView

	at       time.Time // of the newest report
	counts   map[string]int32
	failed   bool // a failure has been reported
	wanted   bool // the run has asked for a report
	timed    bool // a timer is running
	revision int64
}

// The reporter uses these parts of other components.
type (
	reporterAncestry interface {
		collect(task int) (*v1.FanOutView, error)
	}
	reporterChildren interface {
		awaitEnd(a *awaited)
	}
	reporterCommands interface {
		cancel(who, why string)
	}
	reporterContexts interface {
		awaitsAnswers() bool
		hasUnsent() bool
		takeUnsent() (updates []*v1.ContextUpdate, bytes int)
		receiveAnswers()
		refuseAll(why string)
	}
	reporterControls interface {
		pause(c *v1.RunCommand)
		resume(c *v1.RunCommand)
	}
	reporterOutbox interface {
		watch(future workflow.Future, onReady func(workflow.Future))
		signal(id, name string, arg any, written int) workflow.Future
		after(d time.Duration, summary string, do func())
	}
	reporterView interface {
		usedNodes() []string
	}
)

// report sends the run the state of the partition if it has changed.
func (rp *reporter) report() {
	if _, count := rp.core.Instances(0); rp.in.GetPartition() == nil || count == 0 {
		return
	}
	now := rp.now()
	failed := rp.failed || rp.failedInstance() >= 0
	switch wait := reportEvery - now.Sub(rp.at); {
	//workflowcheck:ignore (whether two maps are the same does not depend on the order)
	case !rp.wanted && !rp.contexts.hasUnsent() && maps.Equal(rp.counts, rp.status.ShownCounts(0)):
	case rp.wanted || failed && !rp.failed || wait <= 0 || rp.draining && rp.contexts.hasUnsent():
		rp.failed = failed
		rp.sendReport()
	case !rp.timed:
		rp.timed = true
		rp.outbox.after(wait, "report", func() { rp.timed = false })
	}
}

// sendReport sends the run the state of the partition.
func (rp *reporter) sendReport() {
	p := rp.partitionReport()
	updates, bytes := rp.contexts.takeUnsent()
	p.ContextUpdates = updates
	rp.outbox.watch(rp.outbox.signal(rp.id, names.PartitionReportSignal, p, bytes), func(f workflow.Future) {
		if f.Get(rp.ctx, nil) != nil {
			rp.loseRun()
		}
	})
}

// failedInstance returns the first failed instance, or -1 if none has failed.
func (rp *reporter) failedInstance() int {
	first, count := rp.core.Instances(0)
	//workflowcheck:ignore (looks whether there is one)
	for state := range rp.core.InstanceCounts(0) {
		if v1.IsTaskFailure(state) {
			for i := first; i < first+count; i++ {
				if v1.IsTaskFailure(rp.core.Task(i).State) {
					return i
				}
			}
		}
	}
	return -1
}

// partitionReport returns the state of the partition.
func (rp *reporter) partitionReport() *v1.PartitionReport {
	part, now := rp.in.GetPartition(), rp.now()
	rp.at, rp.wanted, rp.counts = now, false, rp.status.ShownCounts(0)
	// Revisions also increase from one execution to the next.
	rp.revision = max(rp.revision+1, now.UnixMicro())
	p := &v1.PartitionReport{
		Task: part.GetTask(), From: part.GetFrom(), Generation: part.GetGeneration(), Chain: part.GetChain(), Revision: rp.revision, Counts: rp.counts,
		DurationEstimate: rp.flight.DurationEstimate(0), Nodes: rp.view.usedNodes(),
	}
	if i := rp.failedInstance(); i >= 0 {
		p.Failure = phrase.Because(rp.core.Name(i), rp.status.Text(i))
		p.FinalFailures = int32(rp.core.FinalFailures(0))
	}
	return p
}

// lastReport sends the run the end of the partition. It returns when the run has received the report or has ended.
func (rp *reporter) lastReport() {
	if rp.in.GetPartition() == nil {
		return
	}
	p, rec := rp.partitionReport(), rp.core.Task(0)
	p.Over, p.State, p.ExitCode = true, rec.State, rec.ExitCode
	if _, count := rp.core.Instances(0); count > 0 {
		collected, err := rp.ancestry.collect(0)
		if err != nil {
			workflow.GetLogger(rp.ctx).Warn("could not keep the outputs of the partition", "error", err)
		}
		p.Outputs = collected.GetOutputs().GetKey()
	}
	if err := rp.outbox.signal(rp.id, names.PartitionReportSignal, p, 0).Get(rp.ctx, nil); err != nil {
		workflow.GetLogger(rp.ctx).Warn("the run of the partition has ended", "error", err)
	}
}

// receive carries out the orders of the run and settles the context updates that it has answered.
func (rp *reporter) receive() {
	rp.takeOrders()
	rp.contexts.receiveAnswers()
}

// awaitsAnswers reports whether the run still has to answer context updates.
func (rp *reporter) awaitsAnswers() bool { return rp.contexts.awaitsAnswers() }

// takeOrders carries out the orders of the run to this partition. Orders sent to a run are dropped.
func (rp *reporter) takeOrders() {
	orders := workflow.GetSignalChannel(rp.root, names.OrderSignal)
	for orders.Len() > 0 {
		var o v1.PartitionOrder
		if rp.receiveSignal(orders, &o) && rp.in.GetPartition() != nil {
			rp.takeOrder(&o)
		}
	}
}

func (rp *reporter) takeOrder(o *v1.PartitionOrder) {
	rp.wanted = true
	switch {
	case o.GetKilled() != "":
		rp.raise(dag.Kill{Task: 0, Reason: o.GetKilled()})
		return
	case o.GetCancel():
		rp.commands.cancel("", o.GetCancelReason())
		return
	case o.GetPaused() && !rp.flight.IsPaused():
		rp.controls.pause(&v1.RunCommand{})
	case !o.GetPaused() && rp.flight.IsPaused():
		rp.controls.resume(&v1.RunCommand{})
	}
	// An earlier order of this round may not have reached the core yet, so every order is passed on.
	if o.GetHalt() {
		rp.raise(dag.HaltGroup{Task: 0, Reason: cmp.Or(o.GetHaltReason(), v1.ReasonHalt)})
	} else {
		rp.raise(dag.ResumeGroup{Task: 0})
	}
}

// loseRun ends a child workflow whose parent run has ended without it.
func (rp *reporter) loseRun() {
	rp.commands.cancel("", runGone)
	rp.contexts.refuseAll("the run has ended and takes no context updates")
}

// watchParent cancels this workflow when its parent has ended.
func (rp *reporter) watchParent() {
	info := workflow.GetInfo(rp.root)
	parent := info.ParentWorkflowExecution
	if rp.in.GetParentFirst() == "" || parent == nil {
		return
	}
	rp.outbox.after(parentCheck, "look for the run "+parent.ID, func() {
		rp.children.awaitEnd(&awaited{
			id: parent.ID, first: rp.in.GetParentFirst(), over: func(*v1.RunEnd) { rp.loseRun() },
			child: &v1.AwaitingChild{WorkflowId: rp.self, First: info.FirstRunID, Starter: parent.RunID},
		})
	})
}

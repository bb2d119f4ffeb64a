package fanout

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/dag"
)

// An Effect is what the caller carries out, in the order in which a method of [State] has returned it. Where an effect has an
// answer, its comment names the methods that take it. Child workflows are given by number.
type Effect interface{ isEffect() }

// These effects are for the run itself.
type (
	// Raise reports an event to the core.
	Raise struct{ Event dag.Event }
	// Wake starts another round even without an event.
	Wake struct{}
	// AskItems evaluates the list of a task's foreach, and AskCount the number of its instances, unless it has ended: Counted.
	AskItems struct{ Task int }
	AskCount struct{ Task int }
	// LimitChildren counts the partitions whose children are wanted or open towards the limit of child workflows.
	LimitChildren struct{ Open int }
	// Settle gives the answer to a context update that [State.Update] has returned the number of. The refusal is "" if the update
	// is merged.
	Settle struct {
		Ask     int64
		Refusal string
	}
)

// These effects are for the child workflows of partitions.
type (
	// OpenChild starts a child: Prepared, Opened, Unopened and Lost.
	OpenChild struct {
		Child   int
		ID      string
		Opening *Opening
		Input   *historyv1.RunInput
	}
	// Reattach continues with a child that an earlier execution has started: Lost.
	Reattach struct {
		Child     int
		ID, First string
	}
	// CancelChild cancels a child that has not started: Unopened.
	CancelChild struct{ Child int }
	// AwaitClose notes that a child has reported its end and is about to close.
	AwaitClose struct{ Child int }
	// SendOrder sends an order to a partition. The caller adds whether the run is paused.
	SendOrder struct {
		ID    string
		Order *historyv1.PartitionOrder
	}
	// SendAnswer sends the answer to context updates to a partition: AnswerSent. Bytes is the size of the answer.
	SendAnswer struct {
		ID     string
		Answer *historyv1.ContextAnswer
		Bytes  int
	}
)

// These effects are for the run of a partition, and for the partition that it has sent an order.
type (
	// SendReport sends the run a report: RunEnded if that fails. Bytes is the size of its context updates.
	SendReport struct {
		Report *historyv1.PartitionReport
		Bytes  int
	}
	// ReportLater waits before the next report: ReportDue.
	ReportLater struct{ Delay time.Duration }
	// Cancel cancels this workflow.
	Cancel struct{ Reason string }
	// Pause stops new starts, and Resume reverses that.
	Pause  struct{}
	Resume struct{}
)

// These effects are for what people see.
type (
	// Show shows a task whose record has changed.
	Show struct{ Task int }
	// ShowNode shows a node that the run uses.
	ShowNode struct{ Node string }
	// ShowContext shows the context of the run.
	ShowContext struct{ Context *structpb.Struct }
)

func (Raise) isEffect()         {}
func (Wake) isEffect()          {}
func (AskItems) isEffect()      {}
func (AskCount) isEffect()      {}
func (LimitChildren) isEffect() {}
func (Settle) isEffect()        {}
func (OpenChild) isEffect()     {}
func (Reattach) isEffect()      {}
func (CancelChild) isEffect()   {}
func (AwaitClose) isEffect()    {}
func (SendOrder) isEffect()     {}
func (SendAnswer) isEffect()    {}
func (SendReport) isEffect()    {}
func (ReportLater) isEffect()   {}
func (Cancel) isEffect()        {}
func (Pause) isEffect()         {}
func (Resume) isEffect()        {}
func (Show) isEffect()          {}
func (ShowNode) isEffect()      {}
func (ShowContext) isEffect()   {}

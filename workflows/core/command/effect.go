package command

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
)

// Effect is what the caller of a State carries out, in order.
type Effect interface{ isEffect() }

type (
	// Fly carries out effects of the units in flight.
	Fly struct{ Effects []flight.Effect }
	// Spread carries out effects of the large fan-outs.
	Spread struct{ Effects []fanout.Effect }
	// ShowPausedBy shows who has paused the run, and why.
	ShowPausedBy struct{ Text string }
	// ShowSteeredBy names the person whose command is about to end or requeue a task.
	ShowSteeredBy struct {
		Task int
		Who  string
	}
	// ShowApproval shows what was decided about the run.
	ShowApproval struct{ Approval *v1.RunApproval }
	// LogRun logs a command for the run.
	LogRun struct {
		Event   string
		Command *historyv1.TaskCommand
	}
)

func (Fly) isEffect()           {}
func (Spread) isEffect()        {}
func (ShowPausedBy) isEffect()  {}
func (ShowSteeredBy) isEffect() {}
func (ShowApproval) isEffect()  {}
func (LogRun) isEffect()        {}

// raise returns the effect that gives the core an event.
func raise(e dag.Event) Effect { return Fly{[]flight.Effect{flight.Raise{Event: e}}} }

// logged returns effects of the units in flight, and the entry of the log for a command for a task.
func logged(effects []flight.Effect, i int, event string, c *historyv1.TaskCommand) Effect {
	return Fly{append(effects, flight.LogCommand{Task: i, Event: event, Command: c})}
}

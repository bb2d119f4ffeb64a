package run

import (
	"time"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/child"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
)

// newRun returns a run that has only its input. It creates the components and gives each the others that it needs.
func newRun(root workflow.Context, received *historyv1.RunInput, limits limits.Run) *run {
	ctx, _ := workflow.NewDisconnectedContext(root)
	info := workflow.GetInfo(root)
	x := &execution{
		inbox:    &inbox{},
		identity: identity{self: info.WorkflowExecution.ID, first: info.FirstRunID, original: info.OriginalRunID},
		ctx:      ctx, root: root, limits: limits, calls: calls.New(ctx, limits.ScheduleBytes), received: received, commands: command.New(received.GetState().GetCarriedOut()),
		now: func() time.Time { return workflow.Now(ctx) }, settles: map[int64]func(string){},
	}
	x.calls.Home = x.home()
	var (
		e  = &evaluator{execution: x}
		ex = &expander{execution: x, unexpanded: map[int]bool{}}
		rq = &requests{execution: x, ancestors: map[int]storedAncestors{}}
		an = &ancestry{execution: x}
	)

	e.ancestry = an
	ex.evaluator = e
	rq.ancestry = an

	r := &run{
		execution: x, history: history{bound: limits.Hard()}, evaluator: e, expander: ex,
		children: child.New(), ancestry: an, requests: rq, cancels: map[*flight.Unit]workflow.CancelFunc{},
		timers: map[flight.Timer]func(){},
	}
	x.fly, x.spread = r.carryOutFlight, r.carryOutFanOut
	x.calls.IsInterrupted, x.calls.ShowProblem = r.isInterrupted, r.showProblem
	return r
}

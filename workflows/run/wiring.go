package run

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
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
		ctx:      ctx, root: root, limits: limits, calls: calls.New(ctx, limits.ScheduleBytes), received: received, carriedOut: slices.Clone(received.GetState().GetCarriedOut()),
		now: func() time.Time { return workflow.Now(ctx) }, settles: map[int64]func(string){},
	}
	x.calls.Home = x.home()
	var (
		cs = &commands{execution: x}
		ct = &controls{execution: x}
		de = &decisions{execution: x}
		st = &steering{execution: x}
		e  = &evaluator{execution: x}
		ex = &expander{execution: x, unexpanded: map[int]bool{}}
		ab = &abandoned{execution: x}
		cw = &children{execution: x, open: map[string]*childWorkflow{}, awaited: map[string]*awaited{}}
		h  = &history{execution: x, bound: limits.Hard()}
		rq = &requests{execution: x, ancestors: map[int]storedAncestors{}}
		an = &ancestry{execution: x}
		ho = &handover{execution: x}
	)

	ct.commands, ct.expander = cs, ex
	st.commands = cs
	de.commands = cs
	e.ancestry = an
	ex.evaluator = e
	rq.ancestry = an

	cs.handlers = updateHandlers(cs, ct, de, st)
	ho.carriers = []carrier{ab, cs}

	r := &run{
		execution: x, commands: cs, history: h, handover: ho, controls: ct, evaluator: e, expander: ex,
		abandoned: ab, children: cw, ancestry: an, requests: rq, cancels: map[*flight.Unit]workflow.CancelFunc{},
		runs: map[*flight.Unit]*childWorkflow{}, timers: map[flight.Timer]func(){}, partitions: map[int]*childWorkflow{},
	}
	x.fly, x.spread = r.carryOutFlight, r.carryOutFanOut
	x.calls.IsInterrupted, x.calls.ShowProblem, h.isQuiet = r.isInterrupted, r.showProblem, r.isQuiet
	return r
}

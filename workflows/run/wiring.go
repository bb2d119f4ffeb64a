package run

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
)

// newRun returns a run that has only its input. It creates the components and gives each the others that it needs.
func newRun(root workflow.Context, received *v1.RunInput, limits limits.Run) *run {
	ctx, _ := workflow.NewDisconnectedContext(root)
	info := workflow.GetInfo(root)
	x := &execution{
		inbox:    &inbox{},
		identity: identity{self: info.WorkflowExecution.ID, first: info.FirstRunID, original: info.OriginalRunID},
		ctx:      ctx, root: root, limits: limits, received: received, carriedOut: slices.Clone(received.GetState().GetCarriedOut()),
		now: func() time.Time { return workflow.Now(ctx) },
	}
	var (
		o  = &outbox{execution: x}
		s  = &storeCalls{execution: x}
		cs = &commands{execution: x}
		ct = &controls{execution: x}
		de = &decisions{execution: x}
		st = &steering{execution: x}
		v  = &view{execution: x}
		e  = &evaluator{execution: x}
		ex = &expander{execution: x, unexpanded: map[int]bool{}}
		ab = &abandoned{execution: x}
		ap = &approvals{execution: x, waiting: map[int]*approval{}}
		cw = &children{execution: x, open: map[string]*childWorkflow{}, awaited: map[string]*awaited{}}
		cr = &childRuns{execution: x, runs: map[int]*child{}}
		ps = &partitions{execution: x}
		op = &openings{execution: x}
		cx = &contexts{execution: x}
		rp = &reporter{execution: x}
		ds = &deadlines{execution: x, tasks: map[int]*deadline{}}
		h  = &history{execution: x, bound: limits.Hard()}
		rc = &resultCache{execution: x}
		rq = &requests{execution: x, ancestors: map[int]storedAncestors{}}
		an = &ancestry{execution: x}
		ho = &handover{execution: x}
	)

	s.outbox = o
	ct.commands, ct.expander, ct.partitions = cs, ex, ps
	st.approvals, st.childRuns, st.commands, st.outbox, st.partitions = ap, cr, cs, o, ps
	de.commands = cs
	v.approvals, v.outbox, v.partitions, v.store = ap, o, ps, s
	e.ancestry, e.outbox, e.store = an, o, s
	ex.evaluator, ex.partitions = e, ps
	ab.outbox, ab.store = o, s
	cw.outbox, cw.store = o, s
	cr.children, cr.evaluator, cr.outbox, cr.store = cw, e, o, s
	ps.abandoned, ps.children, ps.commands, ps.contexts, ps.openings, ps.outbox, ps.view = ab, cw, cs, cx, op, o, v
	op.ancestry, op.children, op.partitions = an, cw, ps
	rp.ancestry, rp.children, rp.commands, rp.contexts, rp.controls, rp.outbox, rp.view = an, cw, cs, cx, ct, o, v
	ds.outbox = o
	h.outbox = o
	rc.contexts, rc.evaluator, rc.store = cx, e, s
	ap.evaluator, ap.outbox = e, o
	rq.ancestry, rq.outbox, rq.store = an, o, s
	an.partitions, an.store = ps, s
	ho.deadlines, ho.partitions, ho.store, ho.view = ds, ps, s, v

	cs.handlers = updateHandlers(cs, ct, de, ap, st)
	ho.taskCarriers = []taskCarrier{ps, cr, ap}
	ho.carriers = []carrier{ab, ds, cs}

	r := &run{
		execution: x, outbox: o, store: s, commands: cs, view: v, history: h, handover: ho, reporter: rp, deadlines: ds, evaluator: e, expander: ex,
		cache: rc, abandoned: ab, approvals: ap, children: cw, childRuns: cr, contexts: cx, partitions: ps, requests: rq,
		cancels: map[*flight.Unit]workflow.CancelFunc{},
	}
	x.fly = r.carryOutFlight
	s.isInterrupted, h.isQuiet = r.isInterrupted, r.isQuiet
	return r
}

package run

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
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
		ad = &admitter{execution: x, units: map[int]*unit{}}
		l  = &locks{execution: x, wanted: map[string]*unit{}, held: map[string]*unit{}}
		p  = &placer{execution: x}
		at = &attempts{execution: x, byMember: map[int]*attempt{}}
		es = &ends{execution: x}
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
	ct.admitter, ct.commands, ct.expander, ct.partitions = ad, cs, ex, ps
	st.approvals, st.attempts, st.childRuns, st.commands, st.outbox, st.partitions = ap, at, cr, cs, o, ps
	de.commands = cs
	v.admitter, v.approvals, v.outbox, v.partitions, v.store = ad, ap, o, ps, s
	e.ancestry, e.outbox, e.store = an, o, s
	ex.evaluator, ex.partitions = e, ps
	ad.abandoned, ad.approvals, ad.childRuns, ad.ends, ad.evaluator, ad.locks, ad.placer = ab, ap, cr, es, e, l, p
	l.admitter, l.store, l.view = ad, s, v
	p.admitter, p.outbox, p.store, p.view = ad, o, s, v
	at.admitter, at.ends, at.history, at.outbox, at.placer, at.requests, at.store = ad, es, h, o, p, rq, s
	es.admitter, es.contexts, es.evaluator, es.cache = ad, cx, e, rc
	ab.outbox, ab.store = o, s
	cw.outbox, cw.store = o, s
	cr.admitter, cr.children, cr.ends, cr.evaluator, cr.locks, cr.outbox, cr.store = ad, cw, es, e, l, o, s
	ps.abandoned, ps.admitter, ps.children, ps.commands, ps.contexts, ps.openings, ps.outbox, ps.view = ab, ad, cw, cs, cx, op, o, v
	op.admitter, op.ancestry, op.children, op.locks, op.partitions = ad, an, cw, l, ps
	rp.admitter, rp.ancestry, rp.children, rp.commands, rp.contexts, rp.controls, rp.outbox, rp.view = ad, an, cw, cs, cx, ct, o, v
	ds.outbox = o
	h.outbox, h.placer = o, p
	rc.admitter, rc.contexts, rc.evaluator, rc.store = ad, cx, e, s
	ap.admitter, ap.ends, ap.evaluator, ap.outbox = ad, es, e, o
	rq.ancestry, rq.outbox, rq.store = an, o, s
	an.partitions, an.store = ps, s
	ho.admitter, ho.deadlines, ho.partitions, ho.store, ho.view = ad, ds, ps, s, v

	cs.handlers = updateHandlers(cs, ct, de, ap, st)
	at.others = []stopper{ap, cr, ps, p}
	ho.taskCarriers = []taskCarrier{ps, ad, at, cr, ap}
	ho.carriers = []carrier{ab, ad, ds, cs}

	r := &run{
		execution: x, outbox: o, store: s, commands: cs, view: v, history: h, handover: ho, reporter: rp, deadlines: ds, evaluator: e, expander: ex,
		cache: rc, admitter: ad, locks: l, placer: p, attempts: at, abandoned: ab, children: cw, childRuns: cr, partitions: ps,
	}
	s.isInterrupted, h.isQuiet = r.isInterrupted, r.isQuiet
	return r
}

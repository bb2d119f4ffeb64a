package placement

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// Explain describes how the queue handles a task of a run. It returns the node that the task has
// been assigned to and why, or why the task waits; and for every registered node, in the order of
// their names, its score and every reason against it. If the queue does not hold the task, Explain
// evaluates the request req. Resources that the task itself holds do not count against its node.
// Explain does not change the state of the queue.
func (q *Queue) Explain(runID string, req *v1.TaskRequest) *v1.ExplainResponse {
	q.now = q.opts.Now()
	res := &v1.ExplainResponse{}
	s := newRequestClass(runID, req)
	s.ask, s.key = classKeys(runID, req)
	if r := q.unavailable(runID, req.GetTask()); r != nil {
		s, res.Held = r.class, true
		if r.state == assigned {
			res.Chosen, res.Reason = r.node.name, r.whyThere()
			defer q.lift(r)()
		} else {
			res.Reason = r.waitsFor()
		}
	} else if n, key := q.unavailableBefore(runID, req.GetTask()); n != nil {
		res.Chosen, res.Reason = n.name, "given to "+n.name+" before this placement queue took over"
		defer n.liftForeign(key)()
	}
	if res.Reason == "" {
		res.Reason = q.reasonFor(s)
	}
	for _, n := range q.listed {
		res.Nodes = append(res.Nodes, q.verdict(s, n))
	}
	return res
}

// unavailable returns the request that the queue already holds for a task, or nil if there is none.
func (q *Queue) unavailable(runID, task string) *request {
	if owner := q.runs[runID]; owner != nil {
		return owner.tasks[task]
	}
	return nil
}

// unavailableBefore returns the node of a task that an earlier queue placed, or nil if there is
// none.
func (q *Queue) unavailableBefore(runID, task string) (*node, claimKey) {
	for key, n := range q.foreign {
		if key.run == runID && key.task == task {
			return n, key
		}
	}
	return nil, claimKey{}
}

func (q *Queue) verdict(s *requestClass, n *node) *v1.NodeVerdict {
	v := q.look(s, n)
	out := &v1.NodeVerdict{Name: n.name}
	for _, filters := range [][]filter{q.byName, q.byKind, q.capacities} {
		for _, f := range filters {
			if !f.fits(&v) {
				p := f.why(&v)
				// Several filters may give the same reason.
				if reason := p.verb.one + " " + p.object; !slices.Contains(out.Reasons, reason) {
					out.Reasons = append(out.Reasons, reason)
				}
			}
		}
	}
	out.Feasible = len(out.Reasons) == 0
	if s.target.Node != "" {
		return out
	}
	parts := n.figures.parts(s.need.gpus > 0, q.opts.Weights.forTasks(n.tasksBeside(s)))
	out.Score = Sum(parts)
	for _, p := range parts {
		out.Parts = append(out.Parts, &v1.ScorePart{Name: p.Name, Value: p.Value})
	}
	return out
}

// lift temporarily removes what an assigned request holds. The returned function restores it.
func (q *Queue) lift(r *request) (back func()) {
	n, m, g := r.node, r.node.machine, r.grant
	unseen := int64(0)
	if !r.seen {
		unseen = g.memoryMB
	}
	delete(n.claimed, r.key())
	n.leave(r.run.id, g)
	m.unseenMB -= unseen
	m.discharge(&m.holds, g)
	return func() {
		n.claimed[r.key()] = r
		n.enter(r.run.id, g)
		m.unseenMB += unseen
		m.charge(&m.holds, g)
	}
}

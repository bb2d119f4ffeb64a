package placement

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// Explain says what the queue thinks of a task of a run: the node that it has
// been given to and why, or why it waits; and, of every node that is registered,
// by name, all that speaks against it and its score. A task that the queue does
// not hold is looked at as it is in req. What the task itself holds does not
// count against its node. It changes nothing.
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

// unavailable returns the request of a task, nil without any.
func (q *Queue) unavailable(runID, task string) *request {
	if owner := q.runs[runID]; owner != nil {
		return owner.tasks[task]
	}
	return nil
}

// unavailableBefore returns where a task runs that another queue has placed.
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
				// Several filters may refuse a node for the same reason.
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

// lift takes away what an assigned request holds, and returns what puts it back.
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

package placement

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Explain describes how the queue handles a task of a run. It returns the node that the task has
// been assigned to and why, or why the task waits; and for every registered node, in the order of
// their names, its score and every reason against it. If the queue does not hold the task, Explain
// evaluates the request req. For the task of a gang, it describes why a member waits. Resources that the task itself holds do not count against its node. No node is feasible for a member of
// a gang that is larger than the fleet could ever hold.
// Explain does not change the state of the queue.
func (q *Queue) Explain(runID string, req *historyv1.TaskRequest) *historyv1.ExplainResponse {
	q.scheduler.eval.now = q.opts.Now()
	res := &historyv1.ExplainResponse{}
	ask, _ := specKeys(runID, req)
	asked := newSpec(runID, req, ask)
	s := &asked
	var waits *request
	if r := q.demand.requestOf(runID, req.GetTask()); r == nil && req.GetGang() != nil && req.GetGang().GetTask() == req.GetTask() {
		if member := q.demand.anyMember(runID, req.GetTask()); member != nil {
			res.Held, res.Reason, waits = true, member.waitsFor(), member
		}
	} else if r != nil {
		s, res.Held = &r.class.spec, true
		if r.state == assigned {
			res.Chosen, res.Reason = r.place.node.name, r.whyThere()
			defer q.fleet.ledger.lift(&r.place)()
		} else {
			res.Reason, waits = r.waitsFor(), r
		}
	} else if c := q.fleet.ledger.foreignClaimOf(runID, req.GetTask()); c != nil {
		res.Chosen, res.Reason = c.node.name, "given to "+c.node.name+" before this placement queue took over"
		defer q.fleet.ledger.lift(c)()
	}
	if res.Reason == "" {
		res.Reason = q.scheduler.reasons.reasonFor(s, nil)
	}
	isTooLarge := q.scheduler.reasons.isTooLarge(s)
	for _, n := range q.fleet.listed {
		v := q.scheduler.reasons.verdict(s, waits, n)
		if isTooLarge && v.Feasible {
			v.Feasible, v.Reasons = false, []string{q.scheduler.reasons.membersAtMost(s, n)}
		}
		res.Nodes = append(res.Nodes, v)
	}
	return res
}

// verdict returns the score of a node for a request and every reason against it. r is nil if the request does not wait.
func (rs *reasons) verdict(s *spec, r *request, n *node) *v1.NodeVerdict {
	v := rs.eval.viewOf(s, n)
	out := &v1.NodeVerdict{Name: n.name, Reasons: rs.eval.refusals(&v)}
	if p, ok := rs.reservedFor(r, n); ok {
		out.Reasons = append(out.Reasons, p.verb.one+" "+p.object)
	}
	out.Feasible = len(out.Reasons) == 0
	if s.target.Node != "" {
		return out
	}
	parts := n.figures.parts(s.need.gpus > 0, rs.weights.forTasks(n.tasksBeside(s)))
	out.Score = Sum(parts)
	for _, p := range parts {
		out.Parts = append(out.Parts, &v1.ScorePart{Name: p.Name, Value: p.Value})
	}
	return out
}

package run

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
)

// assignment is a placement that a unit has been given on a node. Task and claim are those of its lead.
type assignment struct {
	task        int
	claim       int32
	unit        *unit
	node, queue string
	incarnation string
	gpus        []int32
	numaNode    *int32
}

// applyAnswer applies an answer of the placement queue.
func (p *placer) applyAnswer(res *v1.PlaceResponse) {
	for _, a := range res.GetAssigned() {
		i, ok := p.core.Index(a.GetTask())
		if !ok || !p.waitsForNode(i, a.GetClaim()) {
			continue // withdrawn, or reported twice
		}
		p.clearWaiting(i)
		u := p.admitter.unitOf(i)
		p.admitter.placed(i)
		p.view.addNode(a.GetNode())
		p.assignments = append(p.assignments, assignment{
			task: i, claim: a.GetClaim(), unit: u, node: a.GetNode(), queue: a.GetQueue(),
			incarnation: a.GetIncarnation(), gpus: a.GetGpus(), numaNode: a.NumaNode,
		})
		lead := -1
		if len(u.members) > 1 {
			lead = p.core.Number(u.members[0])
		}
		there := eventlog.PlaceFacts(a)
		for _, m := range u.members {
			p.status.SetPlace(m, a.GetWhy(), lead, there...)
			p.raise(dag.Placed{Task: m, Claim: p.core.Task(m).Claim, Node: a.GetNode()})
		}
	}
	for _, w := range res.GetWaiting() {
		i, ok := p.core.Index(w.GetTask())
		if !ok || !p.waitsForNode(i, w.GetClaim()) {
			continue
		}
		if !w.GetGivenUp() {
			for _, m := range p.admitter.unitOf(i).members {
				p.status.SetWaitReason(m, w.GetReason())
			}
			continue
		}
		p.clearWaiting(i)
		u := p.admitter.unitOf(i)
		p.admitter.leave(u)
		for _, m := range u.members {
			p.raise(dag.GaveUp{Task: m, Claim: p.core.Task(m).Claim, Reason: definition.PlacementReason(p.core.Definition(m)), Error: w.GetReason()})
		}
	}
}

// nextAssignment removes the oldest placement that no attempt uses yet. It returns false if there is none.
func (p *placer) nextAssignment() (assignment, bool) {
	if len(p.assignments) == 0 {
		return assignment{}, false
	}
	a := p.assignments[0]
	p.assignments = p.assignments[1:]
	return a, true
}

// putBack makes a placement the oldest one again.
func (p *placer) putBack(a assignment) { p.assignments = append([]assignment{a}, p.assignments...) }

// takeAssignment removes the placement of a unit. It returns false if there is none that no attempt uses yet.
func (p *placer) takeAssignment(u *unit) (assignment, bool) {
	k := slices.IndexFunc(p.assignments, func(a assignment) bool { return u != nil && a.unit == u })
	if k < 0 {
		return assignment{}, false
	}
	a := p.assignments[k]
	p.assignments = slices.Delete(p.assignments, k, k+1)
	return a, true
}

// hasAssignments reports whether there are placements that no attempt uses yet.
func (p *placer) hasAssignments() bool { return len(p.assignments) > 0 }

// stop ends a task that has a node but no started attempt. It returns false if the task has no node.
func (p *placer) stop(i int) bool {
	u := p.admitter.unitOf(i)
	k := slices.IndexFunc(p.assignments, func(a assignment) bool { return u != nil && a.unit == u })
	if k < 0 {
		return false
	}
	p.raise(dag.Ended{Task: i, Claim: p.core.Task(i).Claim, State: v1.TaskCancelled, ExitCode: -1})
	if p.admitter.removeMember(u, i); len(u.members) > 0 {
		return true
	}
	a, _ := p.takeAssignment(u)
	p.release(a.task, a.claim, "")
	p.admitter.leave(u)
	return true
}

package placement

import (
	"cmp"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// report lists a request for the next Take of its run.
func (q *Queue) report(r *request) {
	if !r.listed {
		r.listed = true
		r.run.report = append(r.run.report, r)
	}
	q.reports[r.run] = struct{}{}
}

// repeat makes the next Take report a request once more.
func (q *Queue) repeat(r *request) {
	if r.state == waiting && r.delayed == "" {
		r.class.freshen(r)
		q.asked = true
		return
	}
	q.report(r)
}

// Repeat makes the next Take report claims of a run once more. It skips claims that have been
// released or are unknown.
func (q *Queue) Repeat(runID string, claims []*v1.ClaimRef) {
	owner := q.runs[runID]
	if owner == nil {
		return
	}
	for _, c := range claims {
		if r := owner.tasks[c.GetTask()]; r != nil && r.claim == c.GetClaim() {
			q.repeat(r)
		}
	}
}

// Take returns what is new for a run since its last Take, oldest request first: tasks that were
// assigned to a node, and tasks that wait. A waiting task is reported when its request is new, when
// it becomes impossible or possible to place, and when it was given up. A change of wording alone,
// such as of the free memory of some node, is reported at most once per Options.ReasonInterval.
func (q *Queue) Take(runID string) ([]*v1.Assignment, []*v1.Waiting) {
	owner := q.runs[runID]
	if owner == nil {
		return nil, nil
	}
	slices.SortFunc(owner.report, func(a, b *request) int { return cmp.Compare(a.seq, b.seq) })
	var placed []*v1.Assignment
	var stuck []*v1.Waiting
	for _, r := range owner.report {
		r.listed = false
		switch r.state {
		case assigned:
			placed = append(placed, r.assignment())
		case waiting, givenUp:
			stuck = append(stuck, &v1.Waiting{
				Task:    r.task,
				Claim:   r.claim,
				Reason:  r.waitsFor(),
				GivenUp: r.state == givenUp,
			})
		}
	}
	owner.report = nil
	delete(q.reports, owner)
	return placed, stuck
}

func (r *request) assignment() *v1.Assignment {
	lane := names.CPULane
	switch {
	case r.class.need.remote:
		lane = names.RemoteLane
	case r.class.need.gpus > 0:
		lane = names.GPULane
	}
	a := &v1.Assignment{
		Task:        r.task,
		Claim:       r.claim,
		Node:        r.node.name,
		Queue:       names.NodeQueue(r.node.name, lane),
		Score:       r.why.score,
		Gpus:        r.grant.gpus,
		Incarnation: r.node.snap.GetIncarnation(),
		Why:         r.whyThere(),
	}
	if r.grant.numa != noNUMA {
		numa := int32(r.grant.numa)
		a.NumaNode = &numa
	}
	return a
}

// waitsFor returns why a request has no node.
func (r *request) waitsFor() string {
	switch {
	case r.state == givenUp:
		return r.verdict
	case r.delayed != "":
		return r.delayed
	}
	return r.class.reason
}

// settle updates the reason of a request class that fits no node, and reports it to the waiting
// requests if it has changed and a report is due. Building a reason looks at every node, so settle
// skips it unless a report or a new request needs it.
func (q *Queue) settle(s *requestClass) {
	impossible := !s.possible()
	turned := s.reported == "" || s.impossible != impossible
	if turned {
		s.impossible = impossible
		q.restartTimeouts(s)
		s.reportEvery, s.reportAt = q.opts.ReasonInterval, q.now
	}
	due := turned || q.fleetChanged && !q.now.Before(s.reportAt)
	if !due && (len(s.fresh) == 0 || q.now.Sub(s.reasonAt) < q.opts.ReasonInterval) {
		return
	}
	s.reason, s.reasonAt = q.reasonFor(s), q.now
	if !due || s.reason == s.reported {
		return
	}
	s.reported, s.reportAt = s.reason, q.now.Add(s.reportEvery)
	s.reportEvery = min(2*s.reportEvery, longestReasonInterval)
	for _, r := range s.waiting {
		q.report(r)
	}
}

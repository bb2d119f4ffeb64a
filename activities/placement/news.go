package placement

import (
	"cmp"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// tell has the run take what is known of a request.
func (q *Queue) tell(r *request) {
	if !r.listed {
		r.listed = true
		r.run.news = append(r.run.news, r)
	}
	q.news[r.run] = struct{}{}
}

// repeat has the run told again what it was told of a request.
func (q *Queue) repeat(r *request) {
	if r.state == waiting && r.delayed == "" {
		r.shape.freshen(r)
		q.asked = true
		return
	}
	q.tell(r)
}

// Repeat has a run told again at the next Take what it was told of claims. Those
// that have been released since, or that the queue does not know, are left out.
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

// Take returns what is new for a run since it last took: tasks that have got a
// node, and tasks that wait, oldest request first. A task that waits is named when
// its request is new, when it becomes impossible to meet or stops being so, and when it
// was given up; a change that is only one of words, such as of the memory that
// is free somewhere, is told no sooner than Options.ReasonInterval says.
func (q *Queue) Take(runID string) ([]*v1.Assignment, []*v1.Waiting) {
	owner := q.runs[runID]
	if owner == nil {
		return nil, nil
	}
	slices.SortFunc(owner.news, func(a, b *request) int { return cmp.Compare(a.seq, b.seq) })
	var placed []*v1.Assignment
	var stuck []*v1.Waiting
	for _, r := range owner.news {
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
	owner.news = nil
	delete(q.news, owner)
	return placed, stuck
}

func (r *request) assignment() *v1.Assignment {
	lane := names.CPULane
	if r.shape.need.gpus > 0 {
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

// waitsFor says why a request has no node.
func (r *request) waitsFor() string {
	switch {
	case r.state == givenUp:
		return r.verdict
	case r.delayed != "":
		return r.delayed
	}
	return r.shape.reason
}

// settle finds out why a shape that fits nowhere waits, and tells the requests
// that have heard another reason if it is time to. No run is sent words that a
// reason made of every node is not worth making for.
func (q *Queue) settle(s *shape) {
	impossible := !s.possible()
	turned := s.told == "" || s.impossible != impossible
	if turned {
		s.impossible = impossible
		q.restartTimeouts(s)
		s.tellEvery, s.tellAt = q.opts.ReasonInterval, q.now
	}
	due := turned || q.fleetChanged && !q.now.Before(s.tellAt)
	if !due && (len(s.fresh) == 0 || q.now.Sub(s.reasonAt) < q.opts.ReasonInterval) {
		return
	}
	s.reason, s.reasonAt = q.reasonFor(s), q.now
	if !due || s.reason == s.told {
		return
	}
	s.told, s.tellAt = s.reason, q.now.Add(s.tellEvery)
	s.tellEvery = min(2*s.tellEvery, longestReasonInterval)
	for _, r := range s.waiting {
		q.tell(r)
	}
}

package placement

import (
	"cmp"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// report lists a request for the next collection of its run.
func (d *demand) report(r *request) {
	if !r.listed {
		r.listed = true
		r.run.report = append(r.run.report, r)
	}
	d.reports[r.run] = struct{}{}
}

// reportFresh reports the requests of a class that have no reported reason yet.
func (d *demand) reportFresh(s *requestClass) {
	for _, r := range s.takeFresh() {
		if r.state == waiting {
			d.report(r)
		}
	}
}

// repeat makes the next collection report a request once more.
func (d *demand) repeat(r *request) {
	if r.state == waiting && r.delayed == "" {
		r.class.freshen(r)
		d.hasNews = true
		return
	}
	d.report(r)
}

// runsToReport returns the sorted ids of the runs that have something to take.
func (d *demand) runsToReport() []string {
	out := make([]string, 0, len(d.reports))
	for r := range d.reports {
		out = append(out, r.ID)
	}
	slices.Sort(out)
	return out
}

// collect returns what is new for a run since the last collection, oldest request first.
func (d *demand) collect(owner *run) (placed []*historyv1.Assignment, stuck []*historyv1.Waiting) {
	slices.SortFunc(owner.report, func(a, b *request) int { return cmp.Compare(a.age.seq, b.age.seq) })
	for _, r := range owner.report {
		r.listed = false
		switch r.state {
		case assigned:
			placed = append(placed, r.assignment())
		case waiting, givenUp:
			stuck = append(stuck, &historyv1.Waiting{
				Task:    r.task,
				Claim:   r.claim,
				Reason:  r.waitsFor(),
				GivenUp: r.state == givenUp,
			})
		}
	}
	owner.report = nil
	delete(d.reports, owner)
	return placed, stuck
}

func (r *request) assignment() *historyv1.Assignment {
	lane := names.CPULane
	switch {
	case r.class.need.remote:
		lane = names.RemoteLane
	case r.class.need.gpus > 0:
		lane = names.GPULane
	}
	a := &historyv1.Assignment{
		Task:        r.task,
		Claim:       r.claim,
		Node:        r.place.node.name,
		Queue:       names.NodeQueue(r.place.node.name, lane),
		Score:       r.why.score,
		Gpus:        r.place.grant.gpus,
		Incarnation: r.place.node.snap.GetIncarnation(),
		Why:         r.whyThere(),
	}
	if r.place.grant.numa != noNUMA {
		numa := int32(r.place.grant.numa)
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
	case r.class.missing() > 0:
		return "waits for the requests of " + count(r.class.missing(), "more member")
	case r.line != nil && r.line.blocked != "":
		return r.line.blocked
	}
	if len(r.reserved) > 0 {
		return r.reserved[0].text(r) + ": " + r.class.notice.reason
	}
	return r.class.notice.reason
}

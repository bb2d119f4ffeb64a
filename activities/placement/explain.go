package placement

import (
	v1 "switchyard/proto/switchyard/v1"
)

// Verdict is what the queue thinks of one node for a request.
type Verdict struct {
	// Node is the name of the node.
	Node string
	// Feasible says that the node could take the request now.
	Feasible bool
	// Reasons are all that speaks against the node, such as "lacks label gpu"; empty when it is feasible.
	Reasons []string
	// Score is the sum of Parts.
	Score float64
	// Parts of the score; none for a pinned request.
	Parts []Part
}

// Explain looks at all present nodes for a request, whether or not that is in
// the queue, and returns a verdict for each, by name. It changes nothing.
func (q *Queue) Explain(runID string, req *v1.TaskRequest) []Verdict {
	q.now = q.opts.Now()
	s := newShape(runID, req)
	out := make([]Verdict, 0, len(q.present))
	for _, n := range q.present {
		v := q.look(s, n)
		verdict := Verdict{Node: n.name, Feasible: true}
		for _, f := range q.filters {
			if !f.fits(v) {
				p := f.why(v)
				verdict.Feasible = false
				verdict.Reasons = append(verdict.Reasons, p.verb.one+" "+p.object)
			}
		}
		if s.target.Node == "" {
			verdict.Parts = Score(n.snap, n.tasks(), s.need.usesGPU, *q.opts.Weights)
			verdict.Score = Sum(verdict.Parts)
		}
		out = append(out, verdict)
	}
	return out
}

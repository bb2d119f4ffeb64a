package orchestrator

import (
	v1 "switchyard/proto/switchyard/v1"
)

// reported is what Place has reported to a run and the run has not acknowledged.
// An answer gets lost when the workflow task that asked fails or times out after
// the local activity: its next attempt asks again, and knows nothing of the
// answer. What AwaitPlacement reports is in the history before it is read.
type reported struct {
	number  int64 // of the newest answer
	answers []reportedAnswer
}

// reportedAnswer names the claims that one answer was about.
type reportedAnswer struct {
	number int64
	claims []*v1.ClaimRef
}

// unacknowledged notes what a run has acknowledged, and returns the claims of
// which were reported to it since. mu is held.
func (p *Placement) unacknowledged(req *v1.PlaceRequest) (claims []*v1.ClaimRef) {
	t := p.reported[req.GetRunId()]
	if t == nil {
		return nil
	}
	for _, a := range t.answers {
		if req.GetEpoch() != p.queue.Epoch() || a.number > req.GetHeard() {
			claims = append(claims, a.claims...)
		}
	}
	t.answers = nil
	return claims
}

// recordAnswer numbers an answer and remembers it until the run has acknowledged it. mu is held.
func (p *Placement) recordAnswer(run string, res *v1.PlaceResponse) {
	if !p.queue.Knows(run) {
		return // there is nothing to report, and nothing would clean it up
	}
	t := p.reported[run]
	if t == nil {
		t = &reported{}
		p.reported[run] = t
	}
	t.number++
	res.Number = t.number
	var claims []*v1.ClaimRef
	for _, a := range res.GetAssigned() {
		claims = append(claims, &v1.ClaimRef{Task: a.GetTask(), Claim: a.GetClaim()})
	}
	for _, w := range res.GetWaiting() {
		if w.GetGivenUp() {
			claims = append(claims, &v1.ClaimRef{Task: w.GetTask(), Claim: w.GetClaim()})
		}
	}
	if len(claims) > 0 {
		t.answers = append(t.answers, reportedAnswer{number: t.number, claims: claims})
	}
}

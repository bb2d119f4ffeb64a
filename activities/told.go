package activities

import (
	v1 "switchyard/proto/switchyard/v1"
)

// told is what Place has told a run and the run has not said that it has heard.
// An answer gets lost when the workflow task that asked fails or times out after
// the local activity: its next attempt asks again, and knows nothing of the
// answer. What AwaitPlacement tells is in the history before anybody reads it.
type told struct {
	number  int64 // of the newest answer
	answers []toldAnswer
}

// toldAnswer names the claims that one answer was about.
type toldAnswer struct {
	number int64
	claims []*v1.ClaimRef
}

// unheard takes a run's word for what it has heard, and returns the claims of
// which it was told since. mu is held.
func (p *Placement) unheard(req *v1.PlaceRequest) (claims []*v1.ClaimRef) {
	t := p.told[req.GetRunId()]
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

// note numbers an answer and remembers it until the run has heard it. mu is held.
func (p *Placement) note(run string, res *v1.PlaceResponse) {
	if !p.queue.Knows(run) {
		return // there is nothing to tell it, nor will anybody forget it
	}
	t := p.told[run]
	if t == nil {
		t = &told{}
		p.told[run] = t
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
		t.answers = append(t.answers, toldAnswer{number: t.number, claims: claims})
	}
}

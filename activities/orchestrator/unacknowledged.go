package orchestrator

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// reported holds the answers of Place that a run has not acknowledged. An answer gets lost if the workflow task fails or
// times out after the local activity. The next attempt of that workflow task repeats the request without knowing the
// answer. Answers of AwaitPlacement cannot get lost, because they are in the history before the run reads them.
type reported struct {
	number  int64 // number of the newest answer
	answers []reportedAnswer
}

// reportedAnswer lists the claims in one answer.
type reportedAnswer struct {
	number int64
	claims []*historyv1.ClaimRef
}

// unacknowledged drops the answers that a run has acknowledged, and returns the claims of the others. mu is held.
func (p *Placement) unacknowledged(req *historyv1.PlaceRequest) (claims []*historyv1.ClaimRef) {
	t := p.reported[req.GetRunId()]
	if t == nil {
		return nil
	}
	for _, a := range t.answers {
		if req.GetEpoch() != p.queue.Epoch() || a.number > req.GetAcknowledged() {
			claims = append(claims, a.claims...)
		}
	}
	t.answers = nil
	return claims
}

// recordAnswer numbers an answer and keeps its claims until the run acknowledges it. mu is held.
func (p *Placement) recordAnswer(run string, res *historyv1.PlaceResponse) {
	if !p.queue.HasRun(run) {
		return // there is nothing to report, and nothing would remove the entry
	}
	t := p.reported[run]
	if t == nil {
		t = &reported{}
		p.reported[run] = t
	}
	t.number++
	res.Number = t.number
	var claims []*historyv1.ClaimRef
	for _, a := range res.GetAssigned() {
		claims = append(claims, &historyv1.ClaimRef{Task: a.GetTask(), Claim: a.GetClaim()})
	}
	for _, w := range res.GetWaiting() {
		if w.GetGivenUp() {
			claims = append(claims, &historyv1.ClaimRef{Task: w.GetTask(), Claim: w.GetClaim()})
		}
	}
	if len(claims) > 0 {
		t.answers = append(t.answers, reportedAnswer{number: t.number, claims: claims})
	}
}

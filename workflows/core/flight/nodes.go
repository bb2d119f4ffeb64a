package flight

import (
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
)

// The run's side of the placement queue in the control process: the requests, the placements that no attempt uses yet, and those to
// be released. The queue holds copies of the requests; the State is the source of truth and sends them again to a queue that has
// lost them.

// unrequest withdraws the request of a unit, if there is one.
func (s *State) unrequest(u *Unit) {
	if s.isWaiting(u, u.Claim) {
		s.clearWaiting(u)
		s.release(u, "")
	}
}

// isWaiting reports whether a unit is in the placement queue under a claim.
func (s *State) isWaiting(u *Unit, claim int32) bool {
	return u != nil && u.Phase == Waiting && u.Claim == claim
}

// clearWaiting marks a unit as no longer queued.
func (s *State) clearWaiting(u *Unit) {
	u.Phase = Admitted
	s.waiting--
}

// release gives back the placement of a unit. outcome is what the dispatch implies about the node, or "" if it never reached the
// node.
func (s *State) release(u *Unit, outcome string) {
	s.released = append(s.released, &historyv1.ClaimRef{Task: s.core.Name(u.Lead), Claim: u.Claim, Outcome: outcome})
}

// PlaceRequest returns the next call of the placement queue, or nil if there is nothing to send. A draining run requests nothing: the
// next execution requests everything again and gets new answers. The call is answered by PlaceAnswered or PlaceFailed.
func (s *State) PlaceRequest(isDraining bool) *historyv1.PlaceRequest {
	s.sent = len(s.requests)
	isAsking := s.sent > 0 && !isDraining
	if s.isPausing || !isAsking && len(s.released) == 0 {
		return nil
	}
	req := &historyv1.PlaceRequest{
		RunId: s.Self, Chain: s.Chain, Released: s.released, Epoch: s.epoch, Acknowledged: s.acknowledged,
		Owner: s.Input.GetBy(), Workflow: s.Input.GetDefinition().GetName(),
	}
	if !isAsking {
		return req
	}
	for _, i := range s.requests {
		if u := s.units[i]; u != nil && u.Lead == i && u.Phase == Waiting {
			req.Requests = append(req.Requests, s.taskRequest(u))
		}
	}
	return req
}

// neededForSource returns the capabilities that bring the source of the run to a task.
func (s *State) neededForSource(task *v1.TaskDefinition) []string {
	switch {
	case definition.GitSource(s.Input, task) != nil:
		return []string{v1.ArtifactsCapability, v1.GitCapability}
	case s.Input.GetSource() != nil && definition.KeepsFiles(task):
		return []string{v1.ArtifactsCapability}
	}
	return nil
}

// taskRequest returns the request of a unit for a node.
func (s *State) taskRequest(u *Unit) *historyv1.TaskRequest {
	task, own := s.core.Definition(u.Lead), s.records.Of(u.Lead)
	req := &historyv1.TaskRequest{
		Task:             s.core.Name(u.Lead),
		Claim:            u.Claim,
		Type:             task.GetType(),
		Constraints:      definition.Constraints(task, s.neededForSource(task)...),
		Resources:        task.GetResources(),
		Container:        definition.ContainerNeeds(task),
		Needs:            definition.TaskNeeds(task),
		Priority:         task.GetPriority(),
		QueuedAt:         timestamppb.New(own.QueuedAt),
		PlacementTimeout: definition.PlacementTimeout(task, s.Input.GetOptions().GetPlacementTimeout()),
		Refusals:         own.Refusals,
	}
	if t := definition.Timeout(task); t > 0 {
		req.Timeout = durationpb.New(t)
	}
	if own.Avoid != "" {
		req.AvoidNodes = []string{own.Avoid}
	}
	s.addGang(req, u)
	if secrets := definition.SourceSecrets(s.Input, task); secrets != nil {
		if req.Needs == nil {
			req.Needs = &historyv1.TaskNeeds{}
		}
		req.Needs.Secrets = append(req.Needs.Secrets, secrets...)
	}
	s.addWorkspace(req, u.Lead)
	return req
}

// PlaceFailed makes calls of the placement queue pause. The caller makes the next one after [State.EndPause].
func (s *State) PlaceFailed() { s.isPausing = true }

// EndPause lets the run call the placement queue again.
func (s *State) EndPause() { s.isPausing = false }

// PlaceAnswered applies the answer to a call. Releases and requests may have been added during the call.
func (s *State) PlaceAnswered(req *historyv1.PlaceRequest, res *historyv1.PlaceResponse, isDraining bool) []Effect {
	s.released = s.released[len(req.GetReleased()):]
	if isDraining {
		return nil
	}
	s.requests = slices.Clone(s.requests[s.sent:])
	if s.epoch != "" && s.epoch != res.GetEpoch() {
		// A different queue answered, so everything that the old one held is requested again.
		s.RequestAll()
	}
	s.epoch, s.acknowledged = res.GetEpoch(), res.GetNumber()
	return s.News(res)
}

// HasRequests reports whether units are to be requested in the next call.
func (s *State) HasRequests() bool { return len(s.requests) > 0 }

// RequestAll adds everything that waits for a node to the next call.
func (s *State) RequestAll() {
	s.requests = s.requests[:0]
	for _, u := range s.leads() {
		if u.Phase == Waiting && u.isRequested {
			s.requests = append(s.requests, u.Lead)
		}
	}
}

// AwaitPlacement returns the request for news from the placement queue, or nil if it is not to be asked now. The request is answered
// by News, after EndAwait.
func (s *State) AwaitPlacement(isDraining bool) *historyv1.AwaitPlacementRequest {
	if s.waiting == 0 || s.isAwaiting || s.isPausing || isDraining {
		return nil
	}
	s.isAwaiting = true
	return &historyv1.AwaitPlacementRequest{RunId: s.Self, Epoch: s.epoch}
}

// EndAwait records that a request for news has ended.
func (s *State) EndAwait() { s.isAwaiting = false }

// OwesReleases reports whether placements are still to be released once placement answers again.
func (s *State) OwesReleases() bool { return s.isPausing && len(s.released) > 0 }

// News applies an answer of the placement queue.
func (s *State) News(res *historyv1.PlaceResponse) []Effect {
	for _, a := range res.GetAssigned() {
		i, ok := s.core.Index(a.GetTask())
		if u := s.units[i]; ok && s.isWaiting(u, a.GetClaim()) { // otherwise it was withdrawn, or is reported twice
			s.assign(u, a)
		}
	}
	for _, w := range res.GetWaiting() {
		i, ok := s.core.Index(w.GetTask())
		u := s.units[i]
		if !ok || !s.isWaiting(u, w.GetClaim()) {
			continue
		}
		if !w.GetGivenUp() {
			s.showWait(u, w.GetReason())
			continue
		}
		s.clearWaiting(u)
		s.leave(u)
		for _, m := range u.Members {
			s.raise(s.giveUp(m, w.GetReason()))
		}
	}
	return s.take()
}

// assign gives a unit its node.
func (s *State) assign(u *Unit, a *historyv1.Assignment) {
	s.clearWaiting(u)
	s.queue.Placed(u.Lead) // it counts once for a gang
	u.Phase, u.Assignment = Placed, a
	u.Place = Place{Node: a.GetNode(), GPUs: a.GetGpus(), NUMANode: a.NumaNode}
	s.do(UseNode{u.Node})
	for _, m := range u.Members {
		s.raise(dag.Placed{Task: m, Claim: s.claimOf(m), Node: u.Node})
	}
	if u.gang != nil {
		s.reserveGang(u.gang)
	} else {
		s.placed = append(s.placed, u)
	}
}

package flight

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/phrase"
)

// The attempt of a long-lived type does not end with its activity. If its node goes silent, the attempt is away: its placement
// stays reserved, and the run does not place the task again.
//
//	attended ──no heartbeat──▶ away ──the node is back and has it──▶ attended
//	                            ├──the node is back without it──▶ what it has recorded, else lost
//	                            └──stopped, killed, cancelled──▶ ended at once; the node removes it when it is back
//
// The run waits for the node with one request, which asks the node for the attempt as soon as the node is back. To the core, an
// attempt that is away is running. The next execution waits for the node again.

// silence returns in words since when nothing has come from the node of a unit. beat is its last heartbeat.
func (s *State) silence(u *Unit, beat *historyv1.ExecuteProgress, now time.Time) string {
	since := now.Add(-s.Silence(u))
	if sent := beat.GetSentAt(); sent != nil && sent.AsTime().Before(now) {
		since = sent.AsTime() // the time-out may have been another one at last, or due while Temporal was away
	}
	return phrase.Silence(u.Node, since)
}

// lose marks an attempt as away and waits for its node.
func (s *State) lose(u *Unit, answer Answer, now time.Time) {
	i, beat := u.Members[0], answer.Beat
	s.attended--
	u.Phase, u.askedIn, u.LeaseUntil = Away, 0, time.Time{}
	s.detached = append(s.detached, u)
	if beat.GetStartedAt() != nil {
		s.started(u, beat.GetStartedAt())
	}
	s.raise(dag.Running{Task: i, Claim: s.claimOf(i)})
	why, r := s.silence(u, beat, now), s.records.At(i)
	r.Away, r.AwayAt = why, now
	s.do(Show{Task: i, Event: v1.EventLost, Text: why})
	s.find(u)
}

// heardOf shows that the fate of a task is known again if its node was silent or away. An event is logged if it was away.
func (s *State) heardOf(i int, event string) {
	was := s.records.Of(i)
	switch {
	case was.Away != "":
	case was.Silent == "":
		return
	case s.core.Task(i).State == v1.TaskAssigned:
		s.do(ShowStarted{i, nil})
	}
	r := s.records.At(i)
	r.Silent, r.Away, r.AwayAt = "", "", time.Time{}
	if was.Away == "" {
		event = ""
	}
	s.do(Show{Task: i, Event: event})
}

// findPause is the wait before the next request to a node for an attempt after Temporal failed to deliver one.
const findPause = 10 * time.Second

// find asks the node of an attempt that is away whether it still has the attempt. The request lasts until the node is back.
func (s *State) find(u *Unit) {
	u.isSought = true
	s.do(Find{u})
}

// Found continues with an attempt whose node is back. A node without the attempt returns what it has recorded; until that answer
// arrives the task stays lost. isThere reports whether the node has the attempt.
func (s *State) Found(u *Unit, isThere bool) []Effect {
	if u.Phase != Away {
		return nil
	}
	u.Phase, u.isSought = Detached, false
	if isThere {
		s.heardOf(u.Members[0], v1.EventFound)
	}
	s.do(Wake{}) // to reattach it
	return s.take()
}

// NotFound asks again for an attempt that is still away after a while. There are no effects if it is not away.
func (s *State) NotFound(u *Unit) []Effect {
	if u.Phase != Away {
		return nil
	}
	return []Effect{After{findPause, "ask " + u.Node + " for " + s.core.Name(u.Members[0]) + " again", Timer{kind: findTimer, unit: u}}}
}

// endAway ends an attempt that is away, without involving its node.
func (s *State) endAway(u *Unit, state string) {
	s.do(Cancel{u})
	s.detached = remove(s.detached, u)
	s.attended++ // the end counts it off
	reason := ""
	if state == v1.TaskCancelled {
		reason = v1.ReasonCancelled
	}
	s.ended(u, Answer{Response: &historyv1.ExecuteResponse{
		State: state, Reason: reason, Error: "node " + u.Node + " was away; it removes the rest of the attempt when it is back",
		Node: u.Node, StartedAt: u.startedAt,
	}})
}

// runsOn records that an attempt continues without its activity.
func (s *State) runsOn(u *Unit, res *historyv1.ExecuteResponse, now time.Time) {
	// A node that does not say how long the lease is applies the same rule.
	u.Phase, u.askedIn, u.LeaseUntil = Detached, 0, now.Add(max(s.Limits.DetachedLease, s.Silence(u), res.GetLease().AsDuration()))
	s.detached = append(s.detached, u)
	s.attended--
	// The answer for a batch does not name the instance that runs.
	if i := u.Members[0]; len(u.Members) == 1 && res.GetStartedAt() != nil {
		s.started(u, res.GetStartedAt())
		s.raise(dag.Running{Task: i, Claim: s.claimOf(i)})
	}
	s.do(Wake{})
}

// started records when the attempt of a unit started, which has one member.
func (s *State) started(u *Unit, at *timestamppb.Timestamp) {
	u.startedAt = at
	s.do(ShowStarted{u.Members[0], at})
}

// Reattach reattaches the attempts that must be stopped and, unless the run is detaching, all others. A node that receives its
// request late detaches the attempts in a later round or in the next execution. It also asks for each attempt that is away and
// that is not asked for yet.
func (s *State) Reattach(isDetaching bool) []Effect {
	for _, u := range s.detached {
		if u.Phase == Away && !u.isSought {
			s.find(u)
		}
	}
	for _, u := range slices.Clone(s.detached) {
		if u.Phase == Detached && (!isDetaching || u.stopped != nil) {
			s.reattach(u)
		}
	}
	return s.take()
}

// reattach starts to wait for an attempt on its node.
func (s *State) reattach(u *Unit) {
	u.Phase = Attended
	s.attended++
	s.detached = remove(s.detached, u)
	s.do(Reattach{u, u.stopped != nil})
}

// Detach asks nodes to detach their attempts, each once a round. Units that are not sent to their nodes yet give their placement
// back. While some attempts are being stopped, or did not detach when asked before, it asks only for those, because detaching the
// others would not help yet.
func (s *State) Detach(round int) []Effect {
	for len(s.placed) > 0 {
		s.giveBack(s.placed[0], v1.ReasonContinued, "the run continues as new")
	}
	var attached, slow []*Unit
	for i := range s.core.Len() {
		u := s.units[i]
		if u == nil || u.Phase != Attended || u.Members[0] != i {
			continue
		}
		attached = append(attached, u)
		if u.stopped != nil || u.askedIn > 0 {
			slow = append(slow, u)
		}
	}
	if len(slow) > 0 {
		attached = slow
	}
	requests := map[string]*historyv1.DetachRequest{} // by node
	var nodes []string
	for _, u := range attached {
		if u.stopped != nil || u.askedIn == round {
			continue
		}
		u.askedIn = round
		req := requests[u.Node]
		if req == nil {
			req = &historyv1.DetachRequest{RunId: s.RunID, Chain: s.Chain, Lease: durationpb.New(s.Limits.DetachedLease)}
			requests[u.Node], nodes = req, append(nodes, u.Node)
		}
		first := u.Members[0]
		req.Attempts = append(req.Attempts, &historyv1.ClaimRef{Task: s.core.Name(first), Claim: s.claimOf(first)})
	}
	slices.Sort(nodes)
	for _, node := range nodes {
		s.do(Detach{node, requests[node]})
	}
	return s.take()
}

package flight

import (
	"fmt"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
)

// gang links the units of the instances that start and end together:
//
//	waiting ──all have a node──▶ reserving ──all have a place there──▶ dispatched ──all have ended──▶ settled
//	                                 └──one has none──▶ moved: all wait again, and no attempt is spent
//
// Placement gives all of them a node in one decision, but a node may still have no room. So nothing starts before every node has
// reserved the place of its member. From then on, the first member that does not complete ends the others. How the members have
// ended is reported when the last one has.
type gang struct {
	units    []*Unit // in the order of their ranks
	reserved int     // how many of the places are reserved
	hosts    []string
	port     int32 // that is free on the node of the first member
	ends     map[*Unit]End
	// cause is the unit whose end ends the others, or nil.
	cause *Unit
}

// joinGang makes an admitted or restored unit the next member of the gang of its task, if that runs as one.
func (s *State) joinGang(u *Unit) {
	task := s.core.Group(u.Lead)
	if s.core.Definition(u.Lead).GetGang() == nil || task < 0 {
		return
	}
	g := s.gangs[task]
	if g == nil {
		g = &gang{ends: map[*Unit]End{}}
		s.gangs[task] = g
	}
	g.units = append(g.units, u)
	u.gang = g
}

// admitGang starts the units of a gang, which admission lets through together.
func (s *State) admitGang(members []int, now time.Time) {
	for _, m := range members {
		u := &Unit{Lead: m, Members: []int{m}, Claim: s.claimOf(m)}
		s.units[m] = u
		s.joinGang(u)
		s.enter(u, now)
	}
}

// leaveSlot gives the admission slot of a unit back. A gang has one, which its last unit gives back.
func (s *State) leaveSlot(u *Unit) {
	g := u.gang
	switch {
	case g == nil:
		s.queue.Done(u.Lead)
	case !slices.ContainsFunc(g.units, func(o *Unit) bool { return o.Phase != Gone }):
		s.queue.Done(g.units[0].Lead)
		delete(s.gangs, s.core.Group(u.Lead))
	}
}

// addGang adds the gang of a unit to its request. All its requests must ask for the same.
func (s *State) addGang(req *historyv1.TaskRequest, u *Unit) {
	if u.gang == nil {
		return
	}
	req.Gang = definition.GangRequest(s.core.Name(s.core.Group(u.Lead)), s.core.Definition(u.Lead))
	req.AvoidNodes = nil
	for _, member := range u.gang.units {
		if node := s.records.Of(member.Lead).Avoid; node != "" {
			req.AvoidNodes = append(req.AvoidNodes, node)
		}
	}
	slices.Sort(req.AvoidNodes)
	req.AvoidNodes = slices.Compact(req.AvoidNodes)
}

// reserveGang asks the nodes of a gang for the places of its members, once all have a node.
func (s *State) reserveGang(g *gang) {
	isUnplaced := func(u *Unit) bool { return u.Phase != Placed }
	if len(g.units) < s.gangSize(g) || slices.ContainsFunc(g.units, isUnplaced) {
		return
	}
	g.reserved, g.hosts = 0, make([]string, len(g.units))
	for _, u := range g.units {
		u.Phase = Reserving
		s.asked++
		s.do(Reserve{Unit: u})
	}
}

func (s *State) gangSize(g *gang) int {
	return int(s.core.Definition(g.units[0].Lead).GetGang().GetSize())
}

// Reserved continues with a unit whose node has answered a request for its place. A node that has not answered counts as one that
// did not pick up the attempt.
func (s *State) Reserved(u *Unit, res *historyv1.ReserveResponse, isAnswered bool) []Effect {
	s.asked--
	if u.Phase != Reserving { // it was given back meanwhile
		return s.take()
	}
	g := u.gang
	switch {
	case !isAnswered:
		s.endReserving(u, s.notPickedUp(u))
	case res.GetRefused() != "":
		end := s.memberEnd(u, "", "", "")
		end.answered(&historyv1.ExecuteResponse{State: v1.AttemptMoved, Reason: res.GetRefused(), Error: res.GetError()})
		s.endReserving(u, end)
	default:
		rank := slices.Index(g.units, u)
		g.hosts[rank] = res.GetHost()
		if rank == 0 {
			g.port = res.GetPort()
		}
		if g.reserved++; g.reserved == len(g.units) {
			for _, member := range g.units {
				member.Phase = Placed
			}
			s.placed = append(s.placed, g.units...)
			s.do(Wake{})
		}
	}
	return s.take()
}

// memberEnd returns the end of a member that was not dispatched.
func (s *State) memberEnd(u *Unit, state, reason, text string) End {
	end := NewEnd(u.Place, s.attempt(u).Members[0])
	end.Ended.State, end.Ended.Reason, end.Ended.Error = state, reason, text
	return end
}

// notPickedUp returns the end of a member whose node does not answer.
func (s *State) notPickedUp(u *Unit) End {
	end := s.memberEnd(u, "", "", "")
	end.unanswered(Answer{Kind: NotPickedUp, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{}})
	return end
}

// endReserving ends a member that was not dispatched. Its node need not keep the place.
func (s *State) endReserving(u *Unit, end End) {
	s.placed = remove(s.placed, u)
	s.release(u, end.Outcome)
	s.do(Reserve{Unit: u, Undo: true})
	s.memberEnded(u, end)
}

// memberEnded records how a member has ended, and reports it with the ends of the others when it was the last.
func (s *State) memberEnded(u *Unit, end End) {
	g := u.gang
	u.Phase = Withheld
	g.ends[u] = end
	if end.Ended.State != v1.TaskCompleted && g.cause == nil {
		g.cause = u
		for _, other := range g.units {
			s.endWith(other)
		}
	}
	if len(g.ends) == len(g.units) {
		s.settleGang(g)
	}
}

// endWith ends a member because another has ended.
func (s *State) endWith(u *Unit) {
	switch {
	case u.Phase == Placed, u.Phase == Reserving:
		s.endReserving(u, s.memberEnd(u, v1.AttemptMoved, "", ""))
	case u.hasAttempt() && u.stopped == nil:
		u.stopped = append(u.stopped, u.Lead)
		if u.Phase == Attended {
			s.do(Cancel{u})
		} else {
			s.do(Wake{}) // the node is asked to stop it
		}
	}
}

// settleGang reports how the members of a gang have ended. They leave the flight.
func (s *State) settleGang(g *gang) {
	ends := make([]End, len(g.units))
	for i, u := range g.units {
		ends[i] = g.ends[u]
	}
	if g.cause != nil {
		ends = endTogether(ends, slices.Index(g.units, g.cause), s.core.Name(g.cause.Lead))
	}
	for _, u := range g.units {
		s.leave(u)
	}
	for _, end := range ends {
		s.do(Settle{end})
	}
}

// endTogether returns the ends of the members of a gang, given that the one with the index cause, called name, was the first that
// did not complete. All are placed again without an attempt spent if that one is, and otherwise all fail as often as it does. A
// cancellation stays what it is, because it is the end of the task or of the run.
func endTogether(ends []End, cause int, name string) []End {
	first := ends[cause].Ended
	if first.State == v1.TaskCancelled || first.State == v1.TaskKilled {
		return ends
	}
	for i := range ends {
		e := &ends[i].Ended
		switch {
		case i == cause:
			continue
		case first.State == v1.AttemptMoved:
			e.State, e.Reason = v1.AttemptMoved, v1.ReasonGang
		case v1.IsRetryableEnd(e.State): // it has failed itself
			e.NoRetry = first.NoRetry
			continue
		default:
			e.State, e.Reason, e.ExitCode = v1.TaskFailed, v1.ReasonGang, -1
		}
		e.Error, e.NoRetry = fmt.Sprintf("it ends with %s, which %s", name, howEnded(first)), first.NoRetry
		if result := ends[i].Response.GetResult(); result != nil {
			result.ContextUpdate = nil // of an attempt that does not count
		}
	}
	return ends
}

// howEnded returns how the first member ended, to follow its name.
func howEnded(first dag.Ended) string {
	text := "is " + first.State
	switch first.State {
	case v1.AttemptMoved:
		text = "could not start"
	case v1.TaskFailed:
		text = first.State
	}
	if first.Error != "" {
		return text + ": " + dag.OneLine(first.Error)
	}
	if first.ExitCode > 0 {
		return fmt.Sprintf("%s: exit code %d", text, first.ExitCode)
	}
	return text
}

// GangOf returns what the attempt of a unit knows of the gang that it is a member of, or nil if it is in none.
func (u *Unit) GangOf() *historyv1.Gang {
	if u.gang == nil {
		return nil
	}
	return &historyv1.Gang{Hosts: u.gang.hosts, MasterPort: u.gang.port}
}

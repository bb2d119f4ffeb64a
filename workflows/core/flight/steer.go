package flight

import (
	v1 "switchyard/proto/switchyard/v1"
)

// People suspend, resume, stop and restart attempts through requests to their nodes. To the core, a suspended attempt is running.

// suspend records who has suspended a task, and why. An empty text means that it runs again.
func (s *State) suspend(i int, by string) {
	if s.records.Of(i).Suspended != by {
		s.records.At(i).Suspended = by
		s.do(Show{Task: i})
	}
}

// Suspend records who has suspended a task, and why. An empty text means that it runs again.
func (s *State) Suspend(i int, by string) []Effect {
	s.suspend(i, by)
	return s.take()
}

// Steered records that the node of an attempt is being asked for something.
func (s *State) Steered(u *Unit) {
	u.isSteered = true
	s.asked++
}

// SteeringAnswered records the answer to such a request.
func (s *State) SteeringAnswered(u *Unit) {
	u.isSteered = false
	s.asked--
}

// SetUnsure records whether it is unknown whether an attempt is suspended.
func (s *State) SetUnsure(u *Unit, isUnsure bool) { u.isUnsure = isUnsure }

// IsSteered reports whether the node of an attempt has not answered a request about it.
func (u *Unit) IsSteered() bool { return u.isSteered }

// IsUnsure reports whether it is unknown whether an attempt is suspended.
func (u *Unit) IsUnsure() bool { return u.isUnsure }

// StopAway ends an attempt that is away as stopped.
func (s *State) StopAway(u *Unit) []Effect {
	s.endAway(u, v1.TaskStopped)
	return s.take()
}

package lifecycle

import "switchyard/activities/executor"

// Phase is a phase in the life of an attempt.
type Phase int

// The phases, as in the diagram of the package. From Stopping on, the attempt is ending.
const (
	Running Phase = iota
	Capturing
	Restarting
	Stopping
	Leaving
	Ended
	Stopped
	Left
)

// State is the state of an attempt. Its methods return the next one.
type State struct {
	Phase Phase
	// Paused reports that the attempt may be suspended.
	Paused bool
}

var (
	errCapturing = &executor.Refusal{Text: "it is paused while an environment is captured from it; try again when the capture has ended"}
	errBusy      = &executor.Refusal{Text: "it is being restarted or captured as another environment; try again when that has ended"}
)

// IsEnding reports whether the attempt is being stopped or left, or is over.
func (s State) IsEnding() bool { return s.Phase >= Stopping }

// IsOver reports whether the attempt has ended or was given up.
func (s State) IsOver() bool { return s.Phase >= Ended }

// IsStopped reports whether the attempt did not end by itself: it is being stopped or left, or was.
func (s State) IsStopped() bool { return s.IsEnding() && s.Phase != Ended }

// IsLeft reports whether the attempt is left to a later worker.
func (s State) IsLeft() bool { return s.Phase == Leaving || s.Phase == Left }

// steer begins to pause or resume the attempt, which may be paused from now on if mayPause is set.
func (s State) steer(mayPause bool) (State, error) {
	switch {
	case s.IsEnding():
		return s, executor.ErrNotRunning
	case s.Phase == Capturing:
		return s, errCapturing
	}
	s.Paused = s.Paused || mayPause
	return s, nil
}

// capture begins a capture.
func (s State) capture() (State, error) {
	switch {
	case s.IsEnding():
		return s, executor.ErrNotRunning
	case s.Phase != Running:
		return s, errBusy
	}
	return State{Phase: Capturing, Paused: true}, nil
}

// captured ends a capture.
func (s State) captured(paused bool) State {
	if s.Paused = paused; s.Phase == Capturing {
		s.Phase = Running
	}
	return s
}

// restart begins a restart.
func (s State) restart() (State, error) {
	switch {
	case s.IsEnding():
		return s, executor.ErrNotRunning
	case s.Phase == Capturing:
		return s, errCapturing
	}
	s.Phase = Restarting
	return s, nil
}

// restarted ends a restart. A restarted attempt is not paused.
func (s State) restarted(failed bool) State {
	if s.Paused = s.Paused && failed; s.Phase == Restarting {
		s.Phase = Running
	}
	return s
}

// stop begins to stop the attempt, or to leave it. An attempt that is over stays as it is.
func (s State) stop(to Phase) State {
	if !s.IsOver() {
		s.Phase = to
	}
	return s
}

// end ends the attempt.
func (s State) end() State {
	switch s.Phase {
	case Stopping:
		s.Phase = Stopped
	case Leaving:
		s.Phase = Left
	case Running, Capturing, Restarting:
		s.Phase = Ended
	}
	return s
}

package command

import (
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// Actions that a node can perform on a running attempt: SteerRequest.action.
const (
	actionPause  = "pause"
	actionResume = "resume"
	actionStop   = "stop"
	// ActionRestart must not be repeated.
	ActionRestart = "restart"
)

// Steer is a request to the node of a task's attempt. The caller gives the answer to SteeringAnswered. Until then the run does not continue
// as new, and the person gets no answer.
type Steer struct {
	Task    int
	Claim   int32
	Node    string
	Action  string
	unit    *flight.Unit
	update  Update
	command *historyv1.TaskCommand
}

// SteerAnswer is what is known when a request to a node has ended.
type SteerAnswer struct {
	Refused  string // why the node has refused, or ""
	IsFailed bool   // the node has failed to perform the action, or has not answered
	Cause    string // of the node's failure, or "" if it has not answered
}

// steer returns the request for a command that needs the node of a task's attempt.
func (s *State) steer(u Update, i int, c *historyv1.TaskCommand, now time.Time) ([]Effect, *Steer, *Refusal) {
	unit := s.Flight.AttemptOf(i)
	if unit.Phase == flight.Away { // it can only be stopped
		return append(s.apply(u, i, c, now), Fly{s.Flight.StopAway(unit)}), nil, nil
	}
	s.Flight.Steered(unit)
	return nil, &Steer{Task: i, Claim: s.Core.Task(i).Claim, Node: unit.Node, Action: u.Action, unit: unit, update: u, command: c}, nil
}

// SteeringAnswered applies the answer of a node, and returns why the command does not count, or nil if it does. To the core, a suspended
// task is running.
func (s *State) SteeringAnswered(r *Steer, a SteerAnswer, now time.Time) ([]Effect, *Refusal) {
	s.Flight.SteeringAnswered(r.unit)
	name, rec, suspends := s.Core.Name(r.Task), s.Core.Task(r.Task), r.Action == actionPause || r.Action == actionResume
	isSame := s.Flight.AttemptOf(r.Task) == r.unit
	if a.IsFailed {
		// The node may have done it regardless. In that case the task can be resumed.
		s.Flight.SetUnsure(r.unit, r.unit.IsUnsure() || suspends)
	}
	switch {
	case a.IsFailed && a.Cause != "":
		return nil, refuse("node %s could not %s task %s: %s", r.Node, r.Action, name, a.Cause)
	case a.IsFailed:
		return nil, refuse("node %s did not answer in time; it may yet %s task %s", r.Node, r.Action, name)
	case a.Refused != "":
		return nil, refuse("task %s: %s", name, a.Refused)
	case !isSame && r.Action == actionPause:
		return nil, refuse("the attempt of task %s has just ended", name)
	case isSame, rec.Claim == r.Claim && !v1.IsTaskTerminal(rec.State):
		s.Flight.SetUnsure(r.unit, r.unit.IsUnsure() && !suspends)
		return s.apply(r.update, r.Task, r.command, now), nil
	}
	return nil, nil
}

// maySuspend checks a command that suspends the attempt of a task.
func (s *State) maySuspend(i int, _ *historyv1.TaskCommand) *Refusal {
	if err := s.maySteer(i); err != nil {
		return err
	}
	if s.Records.Of(i).Suspended != "" {
		return refuse("task %s is already paused", s.Core.Name(i))
	}
	return nil
}

// mayContinue checks a command that resumes a suspended attempt.
func (s *State) mayContinue(i int, _ *historyv1.TaskCommand) *Refusal {
	u := s.Flight.AttemptOf(i)
	switch {
	case s.Records.Of(i).Suspended != "" || u != nil && u.IsUnsure():
		return s.maySteer(i)
	case s.Flight.ApprovalOf(i) != nil:
		return refuse("task %s waits for approval; approve or reject it instead of resuming it", s.Core.Name(i))
	}
	return refuse("task %s is %s; it is not paused by a person", s.Core.Name(i), s.Flight.Shown(i))
}

// mayStop checks a command that stops a task which runs until it is stopped.
func (s *State) mayStop(i int, _ *historyv1.TaskCommand) *Refusal {
	if err := s.isLasting(i, "stop"); err != nil {
		return err
	}
	if u := s.Flight.AttemptOf(i); u != nil && u.Phase == flight.Away {
		return nil
	}
	return s.maySteer(i)
}

// mayRestart checks a command that restarts the machine of a task.
func (s *State) mayRestart(i int, _ *historyv1.TaskCommand) *Refusal {
	if err := s.isLasting(i, "restart"); err != nil {
		return err
	}
	if s.Records.Of(i).Suspended != "" {
		return refuse("task %s is paused: resume it first", s.Core.Name(i))
	}
	return s.maySteer(i)
}

// isLasting checks that a task runs until it is stopped, and no longer waits for its start.
func (s *State) isLasting(i int, action string) *Refusal {
	name, taskType := s.Core.Name(i), s.Core.Definition(i).GetType()
	_, instances := s.Core.Instances(i)
	switch {
	case !v1.Lasts(taskType):
		return refuse("task %s is of type %s, which ends by itself; %s is for tasks that run until they are stopped: cancel or kill it", name, taskType, action)
	case s.Flight.AttemptOf(i) == nil && v1.IsTaskWaiting(s.Core.Task(i).State) && instances == 0:
		return refuse("task %s is not running (%s): cancel it", name, s.Flight.Shown(i))
	}
	return nil
}

// maySteer returns why the node of a task cannot be asked for anything, or nil if it can.
func (s *State) maySteer(i int) *Refusal {
	name, rec, u := s.Core.Name(i), s.Core.Task(i), s.Flight.AttemptOf(i)
	run := s.Flight.RunOf(i)
	_, instances := s.Core.Instances(i)
	switch {
	case v1.IsTaskTerminal(rec.State):
		return refuse("task %s is %s; it has ended", name, rec.State)
	case rec.PendingEnd:
		return refuse("task %s is being %s", name, endingWord(rec.Failure))
	case s.Flight.ApprovalOf(i) != nil:
		return refuse("task %s waits for approval and is not running", name)
	case run != nil:
		return refuse("task %s is a run of its own: pause or resume run %s", name, run.ID)
	case instances > 0 || s.FanOuts.IsPartitioned(i):
		return refuse("task %s is fanned out: name one of its instances, such as %s", name, names.InstanceName(name, 0))
	case u == nil:
		return refuse("task %s is not running (%s): hold it with `switchyard runs hold`", name, s.Flight.Shown(i))
	case u.Phase == flight.Away:
		return refuse("task %s is lost until node %s is back; it can be stopped, cancelled or killed now", name, u.Node)
	case u.IsSteered():
		return refuse("another request about task %s is under way; try again", name)
	}
	return nil
}

package command

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// Update is an update that people send to a run. Its command is checked on arrival, so that an invalid one leaves no trace, and
// again when it is carried out.
type Update struct {
	Name, Description string
	Argument          Argument
	Verdict           string // of a decision; "" for any other update
	Action            string // what the node of the task's attempt does before the command counts, or "" if the command needs no node
	may               func(*State, int, *historyv1.TaskCommand) *Refusal
}

// Argument is what the argument of an update names.
type Argument int

const (
	// ForTask is a task or an instance, in a TaskCommand.
	ForTask Argument = iota
	// ForRun is the run itself: the argument is a RunCommand.
	ForRun
	// ForDeadLetter is a dead letter, in a RetryTaskRequest.
	ForDeadLetter
)

// Updates are the updates of a run, in the order of their registration.
var Updates = []Update{
	{Name: names.RetryUpdate, Description: "retry a dead letter", Argument: ForDeadLetter, may: (*State).mayRetry},
	{Name: names.PauseUpdate, Description: "pause the run, so that nothing new starts", Argument: ForRun, may: (*State).mayPause},
	{Name: names.ResumeUpdate, Description: "continue a paused run", Argument: ForRun, may: (*State).mayResume},
	{Name: names.HoldUpdate, Description: "hold a task, so that it does not start", may: (*State).mayHold},
	{Name: names.ReleaseUpdate, Description: "release a held task", may: (*State).mayRelease},
	{Name: names.CancelTaskUpdate, Description: "cancel a task", may: (*State).mayCancel},
	{Name: names.KillTaskUpdate, Description: "kill a task", may: (*State).mayKill},
	{Name: names.ApproveUpdate, Description: "approve a task", Verdict: v1.ApprovalApproved, may: (*State).mayApprove},
	{Name: names.RejectUpdate, Description: "reject a task", Verdict: v1.ApprovalRejected, may: (*State).mayReject},
	{Name: names.ApproveRunUpdate, Description: "approve the run, so that it starts", Argument: ForRun, Verdict: v1.ApprovalApproved, may: (*State).mayDecideRun},
	{Name: names.RejectRunUpdate, Description: "reject the run", Argument: ForRun, Verdict: v1.ApprovalRejected, may: (*State).mayDecideRun},
	{Name: names.PauseTaskUpdate, Description: "suspend a running task", Action: actionPause, may: (*State).maySuspend},
	{Name: names.ResumeTaskUpdate, Description: "resume a suspended task", Action: actionResume, may: (*State).mayContinue},
	{Name: names.StopTaskUpdate, Description: "stop a task that runs until it is stopped", Action: actionStop, may: (*State).mayStop},
	{Name: names.RestartTaskUpdate, Description: "restart the machine of a task", Action: ActionRestart, may: (*State).mayRestart},
}

// CommandOf returns the argument of an update as a command for a task. A command for the run names no task.
func CommandOf(argument any) *historyv1.TaskCommand {
	switch a := argument.(type) {
	case *historyv1.RunCommand:
		return &historyv1.TaskCommand{By: a.GetBy(), Reason: a.GetReason(), Decision: a.GetDecision()}
	case *historyv1.RetryTaskRequest:
		return &historyv1.TaskCommand{Task: a.GetTask(), By: a.GetBy()}
	case *historyv1.TaskCommand:
		return a
	}
	return nil
}

// Check returns why a command cannot be carried out, or nil if it can.
func (s *State) Check(u Update, c *historyv1.TaskCommand) *Refusal {
	_, refused := s.target(u, u.meant(c))
	return refused
}

// target returns the task or instance that a command is for, or why the command makes no sense.
func (s *State) target(u Update, c *historyv1.TaskCommand) (int, *Refusal) {
	i, ok := s.Core.Index(c.GetTask())
	if u.Argument != ForTask {
		return i, u.may(s, i, c)
	}
	if !ok {
		return 0, refuseAs(names.UnknownTaskError, "task %q: %w", c.GetTask(), dag.ErrUnknownTask)
	}
	if err := s.mayChange(); err != nil {
		return 0, err
	}
	if task := s.Core.Group(i); task >= 0 && s.Core.Definition(i).GetGang() != nil {
		return 0, refuse("%s is a member of the gang of task %s; name the task, because its members start and end together", s.Core.Name(i), s.Core.Name(task))
	}
	return i, u.may(s, i, c)
}

// Do carries out a command that a person has sent, or returns why it does not. If the node of an attempt must act first, Do
// returns the request for that.
func (s *State) Do(u Update, c *historyv1.TaskCommand, now time.Time) ([]Effect, *Steer, *Refusal) {
	c = u.meant(c)
	i, refused := s.target(u, c)
	if refused != nil {
		return nil, nil, refused
	}
	if u.Action != "" {
		return s.steer(u, i, c, now)
	}
	return s.apply(u, i, c, now), nil, nil
}

// apply returns what a command does that may be carried out, after the node of an attempt has done its part.
func (s *State) apply(u Update, i int, c *historyv1.TaskCommand, now time.Time) []Effect {
	steered := ShowSteeredBy{i, c.GetBy()}
	switch u.Name {
	case names.RetryUpdate:
		if task, number, ok := s.FanOuts.Instance(c.GetTask()); ok {
			return []Effect{Spread{s.FanOuts.Requeue(task, number)}}
		}
		return []Effect{steered, raise(dag.Retry{Task: i})}
	case names.PauseUpdate, names.ResumeUpdate:
		return s.SetPaused(u.Name == names.PauseUpdate, c)
	case names.HoldUpdate: // a task that waits for a node leaves the placement queue
		return []Effect{logged(s.Flight.Hold(i, because("", c)), i, v1.EventHeld, c)}
	case names.ReleaseUpdate:
		return []Effect{logged(s.Flight.Unhold(i), i, v1.EventReleased, c), Spread{s.FanOuts.Release(i)}}
	case names.CancelTaskUpdate:
		return []Effect{steered, raise(dag.CancelTask{Task: i, Reason: because(v1.TaskCancelled, c)})}
	case names.KillTaskUpdate:
		// The core, and the next execution of the run, receive the kill before anything is stopped. So whenever the attempt ends, only
		// a completion counts; any other end is a kill.
		return []Effect{steered, raise(dag.Kill{Task: i, Reason: because(v1.TaskKilled, c)})}
	case names.ApproveUpdate:
		c = proto.CloneOf(c)
		c.Input, _ = s.Flight.ApprovalOf(i).Fill(c.GetInput()) // mayApprove has checked it
		return []Effect{Fly{s.Flight.Approve(i, c, now)}}
	case names.RejectUpdate:
		return []Effect{Fly{s.Flight.Reject(i, c, now)}}
	case names.ApproveRunUpdate:
		return []Effect{s.decideRun(u, c, now), LogRun{v1.EventApproved, c}, Fly{[]flight.Effect{flight.Wake{}}}}
	case names.RejectRunUpdate:
		return []Effect{s.decideRun(u, c, now), raise(dag.Abort{State: v1.RunRejected, Reason: v1.ReasonRejected, Error: because(u.Verdict, c)})}
	case names.PauseTaskUpdate:
		return []Effect{logged(s.Flight.Suspend(i, cmp.Or(because("", c), "by a person")), i, v1.EventPaused, c)}
	case names.ResumeTaskUpdate:
		return []Effect{logged(s.Flight.Suspend(i, ""), i, v1.EventResumed, c)}
	case names.RestartTaskUpdate:
		return []Effect{logged(nil, i, v1.EventRestarted, c)}
	}
	return []Effect{steered} // the node stops the task
}

// SetPaused pauses or resumes the run. A task that has a node but has not started gives the node back to a paused run.
func (s *State) SetPaused(isPaused bool, c *historyv1.TaskCommand) []Effect {
	if !isPaused {
		s.Flight.Resume()
		return []Effect{ShowPausedBy{}, Spread{s.FanOuts.OrderAll()}, LogRun{v1.EventResumed, c}}
	}
	s.Flight.Pause()
	effects := []Effect{Spread{s.FanOuts.OrderAll()}, LogRun{v1.EventPaused, c}, Fly{s.Flight.SetAllAside(v1.ReasonPaused, "the run is paused")}}
	if c.GetBy() != "" || c.GetReason() != "" {
		effects = append(effects, ShowPausedBy{because(v1.RunPaused, c)})
	}
	return effects
}

// because returns what was done, by whom and why.
func because(what string, c *historyv1.TaskCommand) string {
	return phrase.Because(phrase.By(what, c.GetBy()), c.GetReason())
}

package command

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// MaySuspend checks a command that suspends the attempt of a task.
func (k Checks) MaySuspend(i int, _ *historyv1.TaskCommand) *Refusal {
	if err := k.maySteer(i); err != nil {
		return err
	}
	if k.Records.Of(i).Suspended != "" {
		return refuse("task %s is already paused", k.Core.Name(i))
	}
	return nil
}

// MayContinue checks a command that resumes a suspended attempt.
func (k Checks) MayContinue(i int, _ *historyv1.TaskCommand) *Refusal {
	u := k.Flight.AttemptOf(i)
	switch {
	case k.Records.Of(i).Suspended != "" || u != nil && u.IsUnsure():
		return k.maySteer(i)
	case k.Flight.ApprovalOf(i) != nil:
		return refuse("task %s waits for approval; approve or reject it instead of resuming it", k.Core.Name(i))
	}
	return refuse("task %s is %s; it is not paused by a person", k.Core.Name(i), k.ShownState(i))
}

// MayStop checks a command that stops a task which runs until it is stopped.
func (k Checks) MayStop(i int, _ *historyv1.TaskCommand) *Refusal {
	if err := k.isLasting(i, "stop"); err != nil {
		return err
	}
	if u := k.Flight.AttemptOf(i); u != nil && u.Phase == flight.Away {
		return nil
	}
	return k.maySteer(i)
}

// MayRestart checks a command that restarts the machine of a task.
func (k Checks) MayRestart(i int, _ *historyv1.TaskCommand) *Refusal {
	if err := k.isLasting(i, "restart"); err != nil {
		return err
	}
	if k.Records.Of(i).Suspended != "" {
		return refuse("task %s is paused: resume it first", k.Core.Name(i))
	}
	return k.maySteer(i)
}

// isLasting checks that a task runs until it is stopped, and no longer waits for its start.
func (k Checks) isLasting(i int, action string) *Refusal {
	name, taskType := k.Core.Name(i), k.Core.Definition(i).GetType()
	_, instances := k.Core.Instances(i)
	switch {
	case !v1.Lasts(taskType):
		return refuse("task %s is of type %s, which ends by itself; %s is for tasks that run until they are stopped: cancel or kill it", name, taskType, action)
	case k.Flight.AttemptOf(i) == nil && v1.IsTaskWaiting(k.Core.Task(i).State) && instances == 0:
		return refuse("task %s is not running (%s): cancel it", name, k.ShownState(i))
	}
	return nil
}

// maySteer returns why the node of a task cannot be asked for anything, or nil if it can.
func (k Checks) maySteer(i int) *Refusal {
	name, rec, u := k.Core.Name(i), k.Core.Task(i), k.Flight.AttemptOf(i)
	run := k.Flight.RunOf(i)
	_, instances := k.Core.Instances(i)
	switch {
	case v1.IsTaskTerminal(rec.State):
		return refuse("task %s is %s; it has ended", name, rec.State)
	case rec.PendingEnd:
		return refuse("task %s is being %s", name, endingWord(rec.Failure))
	case k.Flight.ApprovalOf(i) != nil:
		return refuse("task %s waits for approval and is not running", name)
	case run != nil:
		return refuse("task %s is a run of its own: pause or resume run %s", name, run.ID)
	case instances > 0 || k.FanOuts.IsPartitioned(i):
		return refuse("task %s is fanned out: name one of its instances, such as %s", name, names.InstanceName(name, 0))
	case u == nil:
		return refuse("task %s is not running (%s): hold it with `switchyard runs hold`", name, k.ShownState(i))
	case u.Phase == flight.Away:
		return refuse("task %s is lost until node %s is back; it can be stopped, cancelled or killed now", name, u.Node)
	case u.IsSteered():
		return refuse("another request about task %s is under way; try again", name)
	}
	return nil
}

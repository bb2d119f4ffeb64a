package run

import (
	"fmt"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
)

// mayStop returns why task i cannot be stopped, or nil if it can.
func (st *steering) mayStop(i int) error { return st.maySteerLasting(i, actionStop) }

// mayRestart returns why the machine of task i cannot be restarted, or nil if it can.
func (st *steering) mayRestart(i int) error { return st.maySteerLasting(i, actionRestart) }

// maySteerLasting returns why task i cannot be stopped or restarted, or nil if it can.
func (st *steering) maySteerLasting(i int, action string) error {
	name, taskType := st.core.Name(i), st.core.Definition(i).GetType()
	att, state := st.flight.AttemptOf(i), st.core.Task(i).State
	_, instances := st.core.Instances(i)
	switch {
	case !v1.Lasts(taskType):
		return fmt.Errorf("task %s is of type %s, which ends by itself; %s is for tasks that run until they are stopped: cancel or kill it", name, taskType, action)
	case att == nil && v1.IsTaskWaiting(state) && instances == 0:
		return fmt.Errorf("task %s is not running (%s): cancel it", name, st.status.ShownState(i))
	case att != nil && att.Phase == flight.Away && action == actionStop:
		return nil
	case action == actionRestart && st.records.Of(i).Suspended != "":
		return fmt.Errorf("task %s is paused: resume it first", name)
	}
	return st.maySteer(i)
}

// taskStopped records who has stopped task i.
func (st *steering) taskStopped(i int, c *historyv1.TaskCommand) {
	st.status.SetSteeredBy(i, c.GetBy())
}

func (st *steering) taskRestarted(i int, c *historyv1.TaskCommand) {
	st.logTask(i, v1.EventRestarted, c)
}

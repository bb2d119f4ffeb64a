package run

import v1 "switchyard/proto/switchyard/v1"

// openState returns the state of the run while it is open.
func (r *run) openState() string {
	switch {
	case r.awaitsApproval():
		return v1.RunPendingApproval
	case r.admission.Paused():
		return v1.RunPaused
	case len(r.approvals) > 0 && r.underWay() == len(r.approvals):
		return v1.RunPendingApproval
	}
	return v1.RunRunning
}

// underWay returns the number of tasks and instances that wait for a node or have one.
func (r *run) underWay() int {
	return r.core.Count(v1.TaskQueued) + r.core.Count(v1.TaskAssigned) + r.core.Count(v1.TaskRunning) - r.status.BusyFanOuts
}

// showState updates the state of the open run in its status and in visibility.
func (r *run) showState() { r.setState(r.openState()) }

func (r *run) setState(state string) {
	r.status.Run.State = state
	r.attributes.wanted.State, r.attributes.wanted.DeadLetters = state, r.countDeadLetters()
	r.showAttributes()
}

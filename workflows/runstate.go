package workflows

import "switchyard/workflows/dag"

// States of an open run, and of a task that waits for a person.
const (
	runPending         = "pending"
	runRunning         = "running"
	runPaused          = "paused"
	runPendingApproval = "pending_approval"
	statePaused        = "paused"
	runRejected        = "rejected"
	runFailed          = "failed"
)

// openState is the state of the run while it is open.
func (r *run) openState() string {
	switch {
	case r.admission.Paused():
		return runPaused
	case len(r.approvals) > 0 && r.underWay() == len(r.approvals):
		return runPendingApproval
	}
	return runRunning
}

// underWay is the number of tasks and instances that wait for a node or have one.
func (r *run) underWay() int {
	return r.core.Count(dag.StateQueued) + r.core.Count(dag.StateAssigned) + r.core.Count(dag.StateRunning) - r.board.busyGroups
}

// showState shows the state of the open run, in lists too.
func (r *run) showState() { r.setState(r.openState()) }

func (r *run) setState(state string) {
	r.board.run.State = state
	r.attributes.wanted.State, r.attributes.wanted.DeadLetters = state, r.countDeadLetters()
	r.showAttributes()
}

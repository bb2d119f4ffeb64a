package run

import (
	"cmp"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/phrase"
)

// mayKill returns why task i cannot be killed, or nil if it can.
func (r *run) mayKill(i int) error {
	switch rec := r.core.Task(i); {
	case v1.IsTaskTerminal(rec.State):
		return fmt.Errorf("task %s is %s; it has ended", r.core.Name(i), rec.State)
	case rec.PendingEnd:
		return fmt.Errorf("task %s is being %s already", r.core.Name(i), endingWord(rec.Failure))
	}
	return nil
}

// kill ends a task for good. The core, and the next execution of the run, receive the kill before anything is stopped. So
// whenever the attempt ends, only a completion counts; any other end is a kill.
func (r *run) kill(i int, c *v1.TaskCommand) {
	r.status.Extras(i).SteeredBy = c.GetBy()
	r.events = append(r.events, dag.Kill{Task: i, Reason: phrase.Because(phrase.By("killed", c.GetBy()), c.GetReason())})
}

// killReason returns why task i is being killed, or "" if it is not.
func (r *run) killReason(i int) string {
	if rec := r.core.Task(i); rec.PendingEnd && rec.Failure.State == v1.TaskKilled {
		return cmp.Or(rec.Failure.Error, v1.ReasonKilled)
	}
	return ""
}

// endReason returns in one line why a task that is on a node is to end, or why its run is. It may be empty.
func (r *run) endReason(i int) string {
	if rec := r.core.Task(i); rec.PendingEnd {
		return rec.Failure.Error
	}
	return r.core.Aborted().Error
}

// asKilled turns the cancellation of an attempt into a kill if a person has killed its task.
func (r *run) asKilled(e *dag.Ended) {
	if why := r.killReason(e.Task); why != "" && e.State == v1.TaskCancelled {
		e.State, e.Reason, e.Error = v1.TaskKilled, v1.ReasonKilled, why
	}
}

package run

import (
	"cmp"

	v1 "switchyard/proto/switchyard/v1"
)

// The attempt of a remote type does not end with its node: it runs in a cluster, say, where another node finds it. So it is
// placed anew under its number, as often as that takes, whether or not the task may be retried.

// isRemote reports whether an attempt runs outside of its node.
func (r *run) isRemote(att *attempt) bool {
	return v1.IsRemote(r.core.Definition(att.members[0]).GetType())
}

// isCutShort reports whether an attempt ended in a state, for a reason, in which it may have done its work unnoticed. One that
// was evicted has not: its end is known.
func isCutShort(state, reason string) bool { return state == v1.TaskLost && reason != v1.ReasonEvicted }

// continueElsewhere has a remote attempt that was lost with its node, or that its node has let go, continue on another node. It
// returns what the end says of the node.
func (r *run) continueElsewhere(att *attempt, ends []dispatchEnd, outcome string) string {
	for k := range ends {
		d := &ends[k]
		e := &d.ended
		switch {
		case e.State == v1.TaskLost && e.Reason == v1.ReasonNodeLost && !att.stopped[e.Task]:
			e.State, e.NoRetry = v1.AttemptMoved, false
			d.continues = att.leaseUntil.IsZero() || r.core.Task(e.Task).State == v1.TaskRunning
			if att.excuse != "" {
				e.Reason, e.Error = v1.ReasonLeaseLost, cmp.Or(att.excuse, e.Error)
				d.outcome, outcome = v1.OutcomeMoved, v1.OutcomeMoved
			}
		case e.State == v1.AttemptMoved:
			d.continues = d.res.GetStartedAt() != nil
		}
	}
	return outcome
}

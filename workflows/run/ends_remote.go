package run

import (
	"cmp"

	v1 "switchyard/proto/switchyard/v1"
)

// The attempt of a remote type does not end with its node: it runs elsewhere, for example in a cluster, where another node can
// find it. The run places it again under the same attempt number, as often as needed, whether or not the task is retryable.

// isCutShort reports whether an attempt that ended in this state, for this reason, may have done its work unnoticed. An evicted
// attempt cannot have: its end is known.
func isCutShort(state, reason string) bool { return state == v1.TaskLost && reason != v1.ReasonEvicted }

// continueElsewhere moves a remote attempt to another node if it was lost with its node or its node has released it. It returns
// what the end implies about the node.
func (es *ends) continueElsewhere(att *attempt, ends []dispatchEnd, outcome string) string {
	for k := range ends {
		d := &ends[k]
		e := &d.ended
		switch {
		case e.State == v1.TaskLost && e.Reason == v1.ReasonNodeLost && !att.stopped[e.Task]:
			e.State, e.NoRetry = v1.AttemptMoved, false
			d.continues = att.leaseUntil.IsZero() || es.core.Task(e.Task).State == v1.TaskRunning
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

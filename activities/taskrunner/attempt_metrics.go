package taskrunner

import (
	"cmp"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// countAttempt counts how an attempt, or each member of a batch, ended on this node. res is nil if the node itself was at
// fault.
func (n *Node) countAttempt(taskType string, res *v1.ExecuteResponse) {
	if res == nil {
		n.Metrics.AttemptEnded(taskType, v1.TaskFailed, 0)
		return
	}
	switch res.GetReason() {
	case v1.ReasonNoRoom, v1.ReasonIncarnation: // others hold the room
		n.Metrics.Contended(n.Name)
	case v1.ReasonLeaseLost:
		n.Metrics.LeaseExpired(n.Name)
	}
	for _, m := range res.GetBatch() {
		n.Metrics.AttemptEnded(taskType, cmp.Or(m.GetState(), v1.TaskCompleted), time.Duration(m.GetTookMs())*time.Millisecond)
	}
	if len(res.GetBatch()) > 0 && res.GetState() == v1.TaskCompleted {
		return
	}
	ran := res.GetCompletedAt().AsTime().Sub(res.GetStartedAt().AsTime())
	if res.GetStartedAt() == nil || res.GetNode() != n.Name || len(res.GetBatch()) > 0 { // nothing ran, or it ran elsewhere
		ran = 0
	}
	n.Metrics.AttemptEnded(taskType, res.GetState(), ran)
}

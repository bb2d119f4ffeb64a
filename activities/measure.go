package activities

import v1 "switchyard/proto/switchyard/v1"

// measure counts how an attempt ended on this node. res is nil when the node
// itself was at fault.
func (n *Node) measure(taskType string, res *v1.ExecuteResponse) {
	if res == nil {
		n.Metrics.AttemptEnded(taskType, "failed", 0)
		return
	}
	switch res.GetReason() {
	case "no_room", "incarnation": // others hold the place
		n.Metrics.Contended(n.Name)
	case "lease_lost":
		n.Metrics.LeaseExpired(n.Name)
	}
	ran := res.GetCompletedAt().AsTime().Sub(res.GetStartedAt().AsTime())
	if res.GetStartedAt() == nil || res.GetNode() != n.Name { // nothing ran, or elsewhere
		ran = 0
	}
	n.Metrics.AttemptEnded(taskType, res.GetState(), ran)
}

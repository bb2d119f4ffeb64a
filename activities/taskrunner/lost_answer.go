package taskrunner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// longestOrphan bounds the search for the records of an attempt that is not on the node any more.
const longestOrphan = 30 * time.Second

// lostAnswer returns the answer for an attempt that is not on this node any more, because the worker was restarted or the
// attempt ran unattended for too long. A recorded result counts.
func (n *Node) lostAnswer(ctx context.Context, heartbeat time.Duration, req *historyv1.ExecuteRequest) (*historyv1.ExecuteResponse, error) {
	res := &historyv1.ExecuteResponse{
		State: v1.TaskLost, Reason: v1.ReasonNodeLost, Node: n.Name,
		Error: fmt.Sprintf("node %s was started again, or was cut off for too long, while the task ran", n.Name),
	}
	ctx, cancel := context.WithTimeout(ctx, min(cmp.Or(heartbeat, defaultHeartbeatTimeout)/2, longestOrphan))
	defer cancel()
	members := endedMembersOf(req)
	before, err := n.records().awaitPriorResults(ctx, req, members)
	if err != nil {
		return res, nil // the next attempt tries again
	}
	return withPriorResults(res, req, members, before), nil
}

// endedMembersOf returns the members of a request, with their own attempts counted as unacknowledged.
func endedMembersOf(req *historyv1.ExecuteRequest) []member {
	members := membersOf(req)
	for i := range members {
		members[i].unacknowledged = append(slices.Clip(members[i].unacknowledged), members[i].attempt)
	}
	return members
}

// withPriorResults returns the answer for a request whose attempt is lost, given the recorded results of its members.
func withPriorResults(lost *historyv1.ExecuteResponse, req *historyv1.ExecuteRequest, members []member, before map[int32]priorResult) *historyv1.ExecuteResponse {
	limit := int(req.GetInlineLimit())
	if len(req.GetBatch()) == 0 {
		for _, earlier := range before {
			return earlier.cut(limit)
		}
		return lost
	}
	b := &batch{req: req, limit: min(limit, maxBatchAnswer/len(members)), began: time.Now()}
	for _, earlier := range before {
		if at := earlier.res.GetAssignedAt(); at != nil && at.AsTime().Before(b.began) {
			b.began, lost.AssignedAt = at.AsTime(), at
		}
	}
	for i := range members {
		if earlier, ok := before[members[i].index]; ok {
			lost.Batch = append(lost.Batch, b.result(&members[i], earlier.cut(b.limit)))
		}
	}
	if len(lost.Batch) == len(members) {
		lost.State, lost.Reason, lost.Error = v1.TaskCompleted, "", ""
	}
	return lost
}

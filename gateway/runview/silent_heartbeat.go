package runview

import (
	"cmp"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// longestQuiet is how long a node may send no heartbeat before people see that it is silent, however long the time-out is.
const longestQuiet = 9 * time.Second

// silentSince returns the time of an activity's last heartbeat if the next one is overdue, or the zero time. It is overdue after
// 60% of the heartbeat time-out with which activities begin: a node sends several heartbeats in that time.
func silentSince(p *workflowpb.PendingActivityInfo, now time.Time) time.Time {
	timeout, last := p.GetActivityOptions().GetHeartbeatTimeout().AsDuration(), p.GetLastHeartbeatTime()
	if timeout <= 0 || last == nil || now.Sub(last.AsTime()) < min(timeout*6/10, longestQuiet) {
		return time.Time{}
	}
	return last.AsTime()
}

// leaseUntil returns when an activity's heartbeat time-out expires unless a heartbeat renews it, or nil if the activity has none.
func leaseUntil(p *workflowpb.PendingActivityInfo) *timestamppb.Timestamp {
	timeout, last := p.GetActivityOptions().GetHeartbeatTimeout().AsDuration(), cmp.Or(p.GetLastHeartbeatTime(), p.GetLastStartedTime())
	if timeout <= 0 || last == nil {
		return nil
	}
	return timestamppb.New(last.AsTime().Add(timeout))
}

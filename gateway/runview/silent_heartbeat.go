package runview

import (
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
)

// silentSince returns the time of an activity's last heartbeat if the next one is overdue, or the zero time. It is overdue after
// 60% of the heartbeat time-out: a node sends several heartbeats per time-out, and ends the attempt if none is acknowledged for
// that long.
func silentSince(p *workflowpb.PendingActivityInfo, now time.Time) time.Time {
	timeout, last := p.GetActivityOptions().GetHeartbeatTimeout().AsDuration(), p.GetLastHeartbeatTime()
	if timeout <= 0 || last == nil || now.Sub(last.AsTime()) < timeout*6/10 {
		return time.Time{}
	}
	return last.AsTime()
}

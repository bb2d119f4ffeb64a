package runview

import (
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// RunningAttempt holds when the node accepted a running attempt, and when its process started. For a batch, ended is the number
// of instances that have ended.
type RunningAttempt struct {
	assigned, Started *timestamppb.Timestamp
	ended             int
	// waits is what the attempt waits for, or "". If a heartbeat of the node is overdue, silentSince is the time of the last one;
	// otherwise it is zero.
	waits       string
	silentSince time.Time
	workload    *v1.Workload
	// leaseUntil is when the server declares the attempt lost unless the node sends a heartbeat, or nil if it never does.
	leaseUntil *timestamppb.Timestamp
	// left reports whether the worker has stopped and left the attempt to the next one, until leftUntil, which is nil if the attempt
	// has no lease.
	left      bool
	leftUntil *timestamppb.Timestamp
}

// notice returns what holds up the attempt on its node, or "".
func (r RunningAttempt) notice(node string) string {
	switch {
	case r.left && r.leftUntil == nil:
		return fmt.Sprintf("runs on while the worker of node %s restarts", node)
	case r.left:
		return fmt.Sprintf("runs on while the worker of node %s restarts; if none continues it by %s, it is ended, and its attempt is lost at %s", node,
			phrase.Clock(r.leftUntil.AsTime()), phrase.Clock(r.leaseUntil.AsTime()))
	case !r.silentSince.IsZero():
		return fmt.Sprintf("%s; its attempt is lost at %s, or, if its machine is off, with `switchyard nodes remove %s --dead`",
			phrase.Silence(node, r.silentSince), phrase.Clock(r.leaseUntil.AsTime()), node)
	}
	return r.waits
}

func (r RunningAttempt) equal(other RunningAttempt) bool {
	return r.ended == other.ended && r.waits == other.waits && r.silentSince.Equal(other.silentSince) && r.left == other.left && proto.Equal(r.assigned, other.assigned) && proto.Equal(r.Started, other.Started) &&
		proto.Equal(r.workload, other.workload) && proto.Equal(r.leaseUntil, other.leaseUntil)
}

// LoginKeys adds the public keys that may log in to machines, according to heartbeats, to found: one key per line, by task or
// instance.
func LoginKeys(found map[string]string, pending []*workflowpb.PendingActivityInfo) {
	for _, p := range pending {
		progress, ok := progressOf(p.GetHeartbeatDetails())
		name, claim, isAttempt := names.ParseAttemptID(p.GetActivityId())
		if ok && isAttempt && p.GetActivityType().GetName() == names.ExecuteActivity && claim == progress.GetClaim() && progress.GetSshPublicKey() != "" {
			found[name] = progress.GetSshPublicKey()
		}
	}
}

// RunningAttempts returns the attempts whose process has started according to their heartbeats, by activity id.
func RunningAttempts(pending []*workflowpb.PendingActivityInfo, now time.Time) map[string]RunningAttempt {
	running := map[string]RunningAttempt{}
	for _, p := range pending {
		// An attempt that is being cancelled runs until its processes have ended.
		started := p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED || p.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
		if p.GetActivityType().GetName() != names.ExecuteActivity || !started {
			continue
		}
		progress, ok := progressOf(p.GetHeartbeatDetails())
		if !ok || !progress.GetSpawned() && progress.GetStartedAt() == nil {
			continue
		}
		// After a retry of the activity, the heartbeat may stem from an earlier claim.
		if _, claim, ok := names.ParseAttemptID(p.GetActivityId()); !ok || claim != progress.GetClaim() {
			continue
		}
		r := RunningAttempt{
			assigned: p.GetLastStartedTime(), Started: progress.GetStartedAt(), ended: int(progress.GetEnded()),
			waits: progress.GetNotice(), silentSince: silentSince(p, now), workload: progress.GetWorkload(), leaseUntil: leaseUntil(p),
			left: progress.GetLeft(), leftUntil: progress.GetLeftUntil(),
		}
		if r.Started == nil {
			r.Started = r.assigned
		}
		running[p.GetActivityId()] = r
	}
	return running
}

func progressOf(details *commonpb.Payloads) (*historyv1.ExecuteProgress, bool) {
	if len(details.GetPayloads()) == 0 {
		return nil, false
	}
	var progress historyv1.ExecuteProgress
	err := dataconverter.New().FromPayloads(details, &progress)
	return &progress, err == nil
}

package gateway

import (
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// runningAttempt is when the node took up an attempt that runs, and when its
// process started there. Of a batch, ended is how many of its instances have ended.
type runningAttempt struct {
	assigned, started *timestamppb.Timestamp
	ended             int
}

func (r runningAttempt) equal(other runningAttempt) bool {
	return r.ended == other.ended && proto.Equal(r.assigned, other.assigned) && proto.Equal(r.started, other.started)
}

// runningAttempts are the attempts whose process has been started, by activity
// id, as their heartbeats say.
func runningAttempts(pending []*workflowpb.PendingActivityInfo) map[string]runningAttempt {
	running := map[string]runningAttempt{}
	for _, p := range pending {
		// One that is being cancelled runs until its processes are gone.
		started := p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED || p.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
		if p.GetActivityType().GetName() != names.ExecuteActivity || !started {
			continue
		}
		progress, ok := progressOf(p.GetHeartbeatDetails())
		if !ok || !progress.GetSpawned() && progress.GetStartedAt() == nil {
			continue
		}
		// Of an activity that was tried again, this is the claim that beats.
		if _, claim, ok := names.ParseAttemptID(p.GetActivityId()); !ok || claim != progress.GetClaim() {
			continue
		}
		r := runningAttempt{assigned: p.GetLastStartedTime(), started: progress.GetStartedAt(), ended: int(progress.GetEnded())}
		if r.started == nil {
			r.started = r.assigned
		}
		running[p.GetActivityId()] = r
	}
	return running
}

func progressOf(details *commonpb.Payloads) (*v1.ExecuteProgress, bool) {
	if len(details.GetPayloads()) == 0 {
		return nil, false
	}
	var progress v1.ExecuteProgress
	err := converter.GetDefaultDataConverter().FromPayloads(details, &progress)
	return &progress, err == nil
}

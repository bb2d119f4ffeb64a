package runview

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

// RunningAttempt is when the node accepted an attempt that runs, and when its process started there. Of a batch, ended is
// how many of its instances have ended.
type RunningAttempt struct {
	assigned, Started *timestamppb.Timestamp
	ended             int
}

func (r RunningAttempt) equal(other RunningAttempt) bool {
	return r.ended == other.ended && proto.Equal(r.assigned, other.assigned) && proto.Equal(r.Started, other.Started)
}

// RunningAttempts returns the attempts whose process has been started, by activity id, as their heartbeats report.
func RunningAttempts(pending []*workflowpb.PendingActivityInfo) map[string]RunningAttempt {
	running := map[string]RunningAttempt{}
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
		r := RunningAttempt{assigned: p.GetLastStartedTime(), Started: progress.GetStartedAt(), ended: int(progress.GetEnded())}
		if r.Started == nil {
			r.Started = r.assigned
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

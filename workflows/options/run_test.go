package options

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestPickupTimeoutOfATypeAppliesToIt(t *testing.T) {
	run := &v1.RunOptions{
		PickupTimeout: durationpb.New(time.Minute), PickupTimeouts: map[string]*durationpb.Duration{v1.TypeVPS: durationpb.New(time.Hour)},
	}
	for taskType, want := range map[string]time.Duration{v1.TypeVPS: time.Hour, v1.TypeShell: time.Minute} {
		if got := Execute(&historyv1.ExecuteRequest{Type: taskType}, "a", "q", 0, run).ScheduleToStartTimeout; got != want {
			t.Errorf("%s: %v, want %v", taskType, got, want)
		}
	}
	if got := Execute(&historyv1.ExecuteRequest{Type: v1.TypeVPS}, "a", "q", 0, nil).ScheduleToStartTimeout; got != pickupTimeout {
		t.Errorf("without options: %v, want %v", got, pickupTimeout)
	}
}

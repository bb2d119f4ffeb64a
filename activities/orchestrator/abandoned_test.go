package orchestrator

import (
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// An attempt of a closed run may run on a silent node for as long as its lease has grown.
func TestLeaseOfAnAbandonedAttempt(t *testing.T) {
	t.Parallel()
	fresh, minutes := &historyv1.ExecuteRequest{}, durationpb.New(10*time.Minute)
	growing := &historyv1.ExecuteRequest{MaxLease: minutes}
	for name, test := range map[string]struct {
		req       *historyv1.ExecuteRequest
		scheduled time.Duration
		last      time.Duration // what the server says last; 0 if it says nothing
		want      time.Duration
	}{
		"of an earlier version": {fresh, 20 * time.Second, 0, 20 * time.Second},
		"without a time-out":    {fresh, 0, 0, 15 * time.Second},
		"unknown":               {growing, 15 * time.Second, 0, 10 * time.Minute},
		"known":                 {growing, 15 * time.Second, 4 * time.Minute, 4 * time.Minute},
		"detached before":       {&historyv1.ExecuteRequest{Reattach: true}, 15 * time.Second, 15 * time.Second, time.Minute},
		"raised, then detached": {&historyv1.ExecuteRequest{Reattach: true, MaxLease: minutes}, 15 * time.Second, 15 * time.Second, 10 * time.Minute},
	} {
		o := openWork{timeouts: map[string]time.Duration{}}
		if test.last != 0 {
			o.timeouts["a#1"] = test.last
		}
		event := &historypb.ActivityTaskScheduledEventAttributes{ActivityId: "a#1", HeartbeatTimeout: durationpb.New(test.scheduled)}
		if got := o.lease(event, test.req); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

package workers

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestReasonOfAnAwayNodeHasItsTime(t *testing.T) {
	t.Parallel()
	at := timestamppb.New(time.Date(2026, 11, 30, 12, 3, 10, 0, time.UTC))
	for _, test := range []struct {
		record              *historyv1.NodeRecord
		state, reason, want string
	}{
		{&historyv1.NodeRecord{RestartingUntil: at}, v1.NodeRestarting, "2 tasks run on", "until 12:03:10 UTC"},
		{&historyv1.NodeRecord{StateSince: at}, v1.NodeOffline, "left", "since 2026-11-30 12:03 UTC: left"},
		{&historyv1.NodeRecord{StateSince: at}, v1.NodeOffline, "", "since 2026-11-30 12:03 UTC"},
		{&historyv1.NodeRecord{StateSince: at}, v1.NodeStale, "last heartbeat 8 s ago", "last heartbeat 8 s ago"},
	} {
		if got := waitReason(test.record, test.state, test.reason); got != test.want {
			t.Errorf("%s: %q, want %q", test.state, got, test.want)
		}
	}
}

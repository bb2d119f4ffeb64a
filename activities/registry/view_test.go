package registry

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestRestartingNodeIsShownAsSuch checks that a node restarts rather than is silent, and until when.
func TestRestartingNodeIsShownAsSuch(t *testing.T) {
	stopped := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	e := &Entry{Record: &historyv1.NodeRecord{
		State: v1.NodeRestarting, Reason: "1 task runs on", StateSince: timestamppb.New(stopped), RegisteredAt: timestamppb.New(stopped.Add(-time.Hour)),
		RestartingUntil: timestamppb.New(stopped.Add(time.Minute)), Kept: 1,
		Registration: &historyv1.NodeRegistration{Snapshot: &v1.NodeSnapshot{Running: []*v1.RunningAttempt{{Task: "of then"}}}},
	}}
	n := View(e, stopped.Add(30*time.Second), nil, "")
	if n.GetState() != v1.NodeRestarting || n.GetRunning() != 1 || len(n.GetSnapshot().GetRunning()) > 0 || n.GetReason() != "1 task runs on" ||
		!n.GetRestartingUntil().AsTime().Equal(stopped.Add(time.Minute)) || !n.GetLastBeatAt().AsTime().Equal(stopped) {
		t.Errorf("the node is shown as %v", n)
	}
}

// TestLastBeatOfANodeThatIsOffline checks that the last sign of life of an offline node is not its
// registration.
func TestLastBeatOfANodeThatIsOffline(t *testing.T) {
	registered := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	offline := registered.Add(10 * time.Minute)
	for _, test := range []struct {
		name, reason string
		after        time.Duration // how long the node may be silent; 0 means the default
		since, want  time.Time
	}{
		{"left", names.NodeLeft, 0, offline, offline},
		{"lost", "no heartbeat for 15s", 0, offline, offline.Add(-15 * time.Second)},
		{"lost, another time-out", "no heartbeat for 1m0s", time.Minute, offline, offline.Add(-time.Minute)},
		{"never beat", "no heartbeat for 15s", 0, registered.Add(10 * time.Second), registered},
	} {
		e := &Entry{Record: &historyv1.NodeRecord{
			State: v1.NodeOffline, Reason: test.reason, StateSince: timestamppb.New(test.since), RegisteredAt: timestamppb.New(registered),
			Registration: &historyv1.NodeRegistration{
				OfflineAfter: durationpb.New(test.after), Snapshot: &v1.NodeSnapshot{TakenAt: timestamppb.New(registered)},
			},
		}}
		if got := View(e, offline.Add(time.Hour), nil, "").GetLastBeatAt().AsTime(); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestNodesWithoutHeartbeatAreSilent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(-d)) }
	for name, test := range map[string]struct {
		entry *registry.Entry
		err   error
		is    bool
		since time.Duration
	}{
		"alive":               {&registry.Entry{Record: &historyv1.NodeRecord{State: v1.NodeActive}, BeatAt: now.Add(-2 * time.Second)}, nil, false, 0},
		"silent":              {&registry.Entry{Record: &historyv1.NodeRecord{State: v1.NodeActive}, BeatAt: now.Add(-time.Minute)}, nil, true, time.Minute},
		"without a heartbeat": {&registry.Entry{Record: &historyv1.NodeRecord{State: v1.NodeActive, RegisteredAt: ago(time.Hour)}}, nil, true, time.Hour},
		"offline":             {&registry.Entry{Record: &historyv1.NodeRecord{State: v1.NodeOffline, StateSince: ago(time.Second)}}, nil, true, 16 * time.Second},
		"restarting":          {&registry.Entry{Record: &historyv1.NodeRecord{State: v1.NodeRestarting}, BeatAt: now.Add(-time.Minute)}, nil, false, 0},
		"unknown":             {nil, fmt.Errorf("node a: %w", registry.ErrUnknown), true, 0},
		"cannot be looked up": {nil, fmt.Errorf("Temporal is away"), false, 0},
	} {
		since, is := silentSince(test.entry, test.err, now)
		if is != test.is || is && now.Sub(since) != test.since {
			t.Errorf("%s: %v, since %v", name, is, now.Sub(since))
		}
	}
}

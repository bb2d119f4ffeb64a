package run

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
)

func TestPaceIsWhatNodesHaveMeasured(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	lasting := func(d time.Duration) flight.End {
		return flight.End{Response: &v1.ExecuteResponse{
			AssignedAt: timestamppb.New(start.Add(-time.Hour)), StartedAt: timestamppb.New(start), CompletedAt: timestamppb.New(start.Add(d)),
		}}
	}
	moved := flight.End{Response: &v1.ExecuteResponse{CompletedAt: timestamppb.New(start)}}
	if n, took := totalWork([]flight.End{lasting(time.Second), {}, moved, lasting(2 * time.Second)}); n != 2 || took != 3*time.Second {
		t.Errorf("%d have worked %v, want 2 and 3s", n, took)
	}
	if n, _ := totalWork([]flight.End{{}, moved}); n != 0 {
		t.Errorf("%d have worked that never started", n)
	}
}

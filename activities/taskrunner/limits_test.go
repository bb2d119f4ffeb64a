package taskrunner

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		resources *v1.Resources
		want      executor.Limits
	}{
		"none":     {nil, executor.Limits{Cores: 1, Processes: 4096}},
		"no cores": {&v1.Resources{Cores: proto.Float64(0)}, executor.Limits{Processes: 4096}},
		"all":      {&v1.Resources{Cores: proto.Float64(2.5), MemoryMb: 3, MaxProcesses: 7}, executor.Limits{Cores: 2.5, Memory: 3 << 20, Processes: 7}},
	} {
		if got := limits(test.resources); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestLogLimitIsTheNodesUnlessTheTaskWantsLess(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		node, want int64
		task       int32
	}{{0, 256 << 20, 0}, {0, 1 << 20, 1}, {0, 256 << 20, 300}, {8 << 20, 8 << 20, 0}, {8 << 20, 8 << 20, 9}, {8 << 20, 7 << 20, 7}} {
		n := &Node{MaxOutput: test.node}
		req := &historyv1.ExecuteRequest{Resources: &v1.Resources{MaxOutputMb: test.task}}
		if got := (&work{node: n, attempt: &attempt{req: req}}).newLog().options.MaxBytes; got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

// An attempt that reports progress before its start is not treated as stuck.
func TestPreparingIsNoHang(t *testing.T) {
	t.Parallel()
	n := &Node{Timing: Timing{StartTimeout: time.Minute}}
	a := n.newAttempt(delivery{}, &historyv1.ExecuteRequest{})
	before := a.beats.startBy.Load()
	if a.beats.extendStart(); a.beats.startBy.Load() <= before {
		t.Error("it must start as early as before")
	}
}

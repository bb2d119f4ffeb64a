package placement

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func busyNode() *v1.NodeSnapshot {
	return &v1.NodeSnapshot{
		Cpu:     &v1.CpuSnapshot{Cores: 8, UsagePercent: 40},
		Memory:  &v1.MemorySnapshot{TotalMb: 16000, AvailableMb: 4000},
		Disk:    &v1.DiskSnapshot{TotalGb: 100, IoUtilPercent: 20},
		Network: &v1.NetworkSnapshot{BandwidthMbps: 1000, ThroughputMbps: 250},
		Gpus:    []*v1.GpuSnapshot{{UsagePercent: 50}, {Index: 1, UsagePercent: 10}},
	}
}

func TestScore(t *testing.T) {
	tests := map[string]struct {
		snap  *v1.NodeSnapshot
		tasks int
		gpu   bool
		parts []Part
		sum   float64
	}{
		"all figures": {snap: busyNode(), tasks: 3, gpu: true, sum: 40.5,
			parts: []Part{{"cpu", 18}, {"memory", 7.5}, {"disk", 12}, {"network", 7.5}, {"gpu", 10.5}, {"tasks", -15}}},
		"no GPU asked": {snap: busyNode(), sum: 45,
			parts: []Part{{"cpu", 18}, {"memory", 7.5}, {"disk", 12}, {"network", 7.5}, {"tasks", 0}}},
		"no figures": {snap: &v1.NodeSnapshot{}, tasks: 1, gpu: true, sum: -5,
			parts: []Part{{"cpu", 0}, {"memory", 0}, {"disk", 0}, {"network", 0}, {"gpu", 0}, {"tasks", -5}}},
		"game": {snap: &v1.NodeSnapshot{Gaming: true, Cpu: &v1.CpuSnapshot{Cores: 8}}, sum: -10,
			parts: []Part{{"cpu", 30}, {"memory", 0}, {"disk", 0}, {"network", 0}, {"gaming", -40}, {"tasks", 0}}},
		"traffic above the link speed": {sum: 0,
			snap:  &v1.NodeSnapshot{Network: &v1.NetworkSnapshot{BandwidthMbps: 100, ThroughputMbps: 180}},
			parts: []Part{{"cpu", 0}, {"memory", 0}, {"disk", 0}, {"network", 0}, {"tasks", 0}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := DefaultWeights()
			got := figuresOf(tt.snap, &w).parts(tt.gpu, w.forTasks(tt.tasks))
			if diff := cmp.Diff(tt.parts, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if sum := Sum(got); math.Abs(sum-tt.sum) > 1e-9 {
				t.Errorf("sum %v, want %v", sum, tt.sum)
			}
		})
	}
}

// TestScoreCountsOnlyEarlierTasks checks that the reported score counts only the tasks that were on the node
// before.
func TestScoreCountsOnlyEarlierTasks(t *testing.T) {
	q := newQueue(newClock(), aNode("a", func(n *v1.NodeSnapshot) {
		n.Cpu.UsagePercent, n.Memory.AvailableMb, n.Disk.IoUtilPercent = 50, 4096, 100
	}))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t1"), aTask("t2")})
	q.Place()
	placed, _ := q.Take("r")
	if len(placed) != 2 || placed[0].Score != 30 || placed[1].Score != 25 {
		t.Errorf("got %v, want scores 30 and 25", placed)
	}
	if placed[0].Queue != "node:a:cpu" {
		t.Errorf("queue %q", placed[0].Queue)
	}
}

func TestPinnedSkipsScore(t *testing.T) {
	q := newQueue(newClock(), aNode("a", gpus(1)), aNode("b"))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", constrained(func(c *v1.Constraints) { c.TargetNode = "a::1" }))})
	q.Place()
	placed, _ := q.Take("r")
	if len(placed) != 1 || placed[0].Node != "a" || placed[0].Score != 0 || placed[0].Queue != "node:a:gpu" {
		t.Errorf("got %v", placed)
	}
}

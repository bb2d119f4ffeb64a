package placement

import (
	"strings"
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestInactiveNodeGetsNoTasks checks that a node that is not active gets no tasks, and that requests that only this
// node can meet wait while it may come back.
func TestInactiveNodeGetsNoTasks(t *testing.T) {
	gpuTask := constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"gpu"} })
	tests := map[string]struct {
		node   Node
		change func(*historyv1.TaskRequest)
		reason string
	}{
		"active":                 {Node{State: v1.NodeActive}, gpuTask, ""},
		"no state":               {Node{}, gpuTask, ""},
		"stale":                  {Node{State: v1.NodeStale, Reason: "last heartbeat 8 s ago"}, gpuTask, "0 of 2 nodes fit: a lacks label gpu; b is stale (last heartbeat 8 s ago)"},
		"stale without a reason": {Node{State: v1.NodeStale}, gpuTask, "0 of 2 nodes fit: a lacks label gpu; b is stale"},
		"draining":               {Node{State: v1.NodeDraining}, gpuTask, "0 of 2 nodes fit: a lacks label gpu; b is draining"},
		"offline":                {Node{State: v1.NodeOffline}, gpuTask, "no node fits until b is back: a lacks label gpu; b is offline"},
		"pinned and offline":     {Node{State: v1.NodeOffline}, pinned("b"), "no node fits until b is back: b is offline"},
		"too small and offline": {Node{State: v1.NodeOffline}, func(r *historyv1.TaskRequest) {
			r.Constraints = &v1.Constraints{NodeLabels: []string{"gpu"}, MinMemoryMb: 1 << 30}
		}, "no node could ever fit: a lacks label gpu; b is offline"},
		"restarting":       {Node{State: v1.NodeRestarting, Reason: "until noon"}, gpuTask, "no node fits until b is back: a lacks label gpu; b is restarting (until noon)"},
		"pinned and stale": {Node{State: v1.NodeStale}, pinned("b"), "0 of 1 nodes fit: b is stale"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.node.Snapshot = aNode("b", labels("gpu"))
			q := New(Options{Now: newClock().now})
			q.SetNodes(append(live(aNode("a")), tt.node))
			q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", tt.change)})
			nodes, reasons := placeAll(t, q, "r")
			if reasons["t"] != tt.reason || (nodes["t"] == "b") != (tt.reason == "") {
				t.Errorf("placed on %q, reason %q, want %q", nodes["t"], reasons["t"], tt.reason)
			}
			// The same node gets the task once it is active.
			q.SetNodes(live(aNode("a"), tt.node.Snapshot))
			if nodes, _ := placeAll(t, q, "r"); tt.reason != "" && (nodes["t"] != "b") != strings.Contains(tt.reason, "could ever") {
				t.Errorf("got %v after it has become active", nodes)
			}
		})
	}
}

// TestOfflineNodeHoldsNothing checks that the attempts of an offline node, which have ended with
// its lease, hold nothing of a machine that it shares with another node.
func TestOfflineNodeHoldsNothing(t *testing.T) {
	old := aNode("a", onMachine("m"), gpus(1), holding(-1, 4, 0, 0))
	q := New(Options{Now: newClock().now})
	q.SetNodes([]Node{{Snapshot: old, State: v1.NodeStale}, {Snapshot: aNode("b", onMachine("m"), gpus(1))}})
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", withGPUs(1))})
	if nodes, _ := placeAll(t, q, "r"); len(nodes) > 0 {
		t.Fatalf("got %v while a may still run something", nodes)
	}
	q.SetNodes([]Node{{Snapshot: old, State: v1.NodeOffline}, {Snapshot: aNode("b", onMachine("m"), gpus(1))}})
	if nodes, reasons := placeAll(t, q, "r"); nodes["t"] != "b" {
		t.Errorf("got %v %v", nodes, reasons)
	}
}

package registry

import (
	"fmt"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// TestNodesOfAMachineShowWhatTheOthersHold checks that resources held by one node of a machine are
// free on none of its nodes, and that each node lists what the others hold.
func TestNodesOfAMachineShowWhatTheOthersHold(t *testing.T) {
	node := func(name, machine, state string, running ...*v1.RunningAttempt) *v1.Node {
		return &v1.Node{
			Name: name, Machine: machine, State: state, Snapshot: &v1.NodeSnapshot{Running: running, Gpus: []*v1.GpuSnapshot{{}, {Index: 1, MemoryMb: 8000}}},
			Cores: &v1.NodeAmount{Total: 4, Free: 4}, MemoryMb: &v1.NodeAmount{Total: 1000, Free: 900}, Gpus: &v1.NodeAmount{Total: 2, Free: 2},
		}
	}
	holding := &v1.RunningAttempt{Cores: 1.5, MemoryMb: 400, Gpus: []int32{1}}
	part := func(thousandths, memoryMB int32) *v1.RunningAttempt {
		return &v1.RunningAttempt{Gpus: []int32{1}, GpuPart: &v1.GpuPart{Thousandths: thousandths, MemoryMb: memoryMB}}
	}
	nodes := []*v1.Node{
		node("a", "m", v1.NodeActive), node("b", "m", v1.NodeActive, holding, &v1.RunningAttempt{Cores: 1}),
		node("c", "p", v1.NodeActive, part(300, 0), part(0, 6000)), node("d", "p", v1.NodeActive, part(200, 0)),
		node("elsewhere", "n", v1.NodeActive), node("gone", "m", v1.NodeOffline, holding), node("unnamed", "", v1.NodeActive),
	}
	addNeighbors(nodes)
	for i, want := range []string{
		"1.5 600 1, beside b: 2.5 400 [1]", "1.5 600 1",
		"4 900 1.25, beside d: 0 0 [1]", "4 900 1.25, beside c: 0 0 [1]", "4 900 2", "4 900 2", "4 900 2",
	} {
		n := nodes[i]
		got := fmt.Sprint(n.GetCores().GetFree(), n.GetMemoryMb().GetFree(), n.GetGpus().GetFree())
		for _, o := range n.GetNeighbors() {
			got += fmt.Sprintf(", beside %s: %v %v %v", o.GetName(), o.GetCores(), o.GetMemoryMb(), o.GetGpus())
		}
		if got != want {
			t.Errorf("%s: %s, want %s", n.GetName(), got, want)
		}
	}
}

package tasklist

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// TestDemandMatchesThePlacementRequest checks the demands of all kinds of tasks.
func TestDemandMatchesThePlacementRequest(t *testing.T) {
	t.Parallel()
	privileged, err := structpb.NewStruct(map[string]any{"image": "i", "privileged": true})
	if err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		task *v1.TaskDefinition
		want *v1.TaskDemand
	}{
		"nothing said": {&v1.TaskDefinition{Type: v1.TypeShell}, &v1.TaskDemand{Cores: 1}},
		"no node":      {&v1.TaskDefinition{Type: v1.TypeApproval}, nil},
		"resources": {
			&v1.TaskDefinition{Type: v1.TypeShell, Resources: &v1.Resources{Cores: proto.Float64(0.5), MemoryMb: 512, Gpus: 2, NumaNode: proto.Int32(1)}},
			&v1.TaskDemand{Cores: 0.5, MemoryMb: 512, Gpus: 2, NumaNode: proto.Int32(1)},
		},
		"a part of a GPU": {
			&v1.TaskDefinition{Type: v1.TypeShell, Resources: &v1.Resources{Gpus: 0.25, GpuMemoryMb: 2000, GpuModel: "H100"}},
			&v1.TaskDemand{Cores: 1, Gpus: 1, GpuPart: &v1.GpuPart{Thousandths: 250, MemoryMb: 2000}, Constraints: []string{"GPU model H100", "2000 MiB of a GPU"}},
		},
		"target": {
			&v1.TaskDefinition{Type: v1.TypeShell, Constraints: &v1.Constraints{TargetNode: "n1:1::0,2"}},
			&v1.TaskDemand{Cores: 1, Gpus: 2, NumaNode: proto.Int32(1), Constraints: []string{"node n1", "GPU 0, 2"}},
		},
		"constraints": {
			&v1.TaskDefinition{Type: v1.TypeShell, Constraints: &v1.Constraints{
				NodeLabels: []string{"ssd", "eu"}, AnyLabels: []string{"a", "b"}, MinMemoryMb: 100, MinDiskGb: 1.5, RequiresGpu: true, AvoidGaming: true, Tolerates: []string{"gpu"},
				AllowedNodes: []string{"n1", "n2"}, ForbiddenNodes: []string{"n3"}, RequiresExecutors: []string{"container"},
				RequiresCapabilities: map[string]string{"z": "1", "gpu": "nvidia"}, MaxParallelPerNode: 3,
			}},
			&v1.TaskDemand{Cores: 1, Gpus: 1, Constraints: []string{
				"node n1 or n2", "not node n3", "label ssd", "label eu", "label a or b", "no gaming", "tolerates gpu", "runs container tasks", "capability gpu=nvidia", "capability z=1",
				"100 MiB available", "1.5 GiB of disk free", "at most 3 of its run on a node",
			}},
		},
		"container": {&v1.TaskDefinition{Type: v1.TypeContainer, Spec: privileged}, &v1.TaskDemand{Cores: 1, Constraints: []string{"privileged containers"}}},
		"agent":     {&v1.TaskDefinition{Type: v1.TypeSubagent}, &v1.TaskDemand{Cores: 1, Constraints: []string{"key for anthropic"}}},
	} {
		if got := demandOf(test.task); !proto.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
	if got := demandOf(&v1.TaskDefinition{Type: v1.TypeK8sJob}); !got.GetRemote() {
		t.Errorf("a Job of Kubernetes: %v", got)
	}
}

// TestNeedsCacheIsBounded checks that the cache evicts the runs that were read first.
func TestNeedsCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := &needsCache{}
	needs := map[string]taskNeeds{}
	for i := range maxCachedTasks / 2 {
		needs[fmt.Sprint(i)] = taskNeeds{}
	}
	for _, run := range []string{"a", "b", "b", "c"} {
		c.add(run, needs)
	}
	if c.known["a"] != nil || c.known["b"] == nil || c.known["c"] == nil || c.tasks != maxCachedTasks || len(c.order) != 2 {
		t.Errorf("%d tasks of %v are kept", c.tasks, c.order)
	}
}

// TestFleetCountsAMachineOnce checks the free amounts of the active nodes.
func TestFleetCountsAMachineOnce(t *testing.T) {
	t.Parallel()
	node := func(name, machine, state string, cores float64) *v1.Node {
		return &v1.Node{
			Name: name, Machine: machine, State: state, MaxParallel: 4, Running: 1, Cores: &v1.NodeAmount{Total: 8, Free: cores},
			MemoryMb: &v1.NodeAmount{Total: 1000.55, Free: 100.75}, Gpus: &v1.NodeAmount{Total: 1, Free: 1},
		}
	}
	res := &v1.GetQueueResponse{}
	addFleet(res, []*v1.Node{node("a", "m", v1.NodeActive, 2), node("b", "m", v1.NodeActive, 3), node("c", "", v1.NodeActive, 8), node("d", "", v1.NodeOffline, 8)})
	addAsked(res, &v1.QueueGroup{Reason: v1.WaitBusy, Count: 3, Demand: &v1.TaskDemand{Cores: 0.5, MemoryMb: 10, Gpus: 1}})
	addAsked(res, &v1.QueueGroup{Reason: v1.WaitBusy, Count: 3, Demand: &v1.TaskDemand{Cores: 1, Remote: true}})
	addAsked(res, &v1.QueueGroup{Reason: v1.WaitLock, Count: 3})
	addAsked(res, &v1.QueueGroup{Reason: v1.WaitBusy, Count: 2, Demand: &v1.TaskDemand{Gpus: 1, GpuPart: &v1.GpuPart{Thousandths: 250}}})
	want := &v1.GetQueueResponse{
		Slots: &v1.QueueAmount{Asked: 5, Free: 9, Total: 12}, Cores: &v1.QueueAmount{Asked: 1.5, Free: 11, Total: 16},
		MemoryMb: &v1.QueueAmount{Asked: 30, Free: 200, Total: 2000}, Gpus: &v1.QueueAmount{Asked: 3.5, Free: 2, Total: 2},
	}
	if !proto.Equal(res, want) {
		t.Errorf("%v, want %v", res, want)
	}
}

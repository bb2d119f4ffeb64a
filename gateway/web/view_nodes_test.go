package web

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	listNodes      = switchyardv1connect.NodeServiceListNodesProcedure
	getNode        = switchyardv1connect.NodeServiceGetNodeProcedure
	getNodeWorkers = switchyardv1connect.NodeServiceGetNodeWorkersProcedure
	drainNode      = switchyardv1connect.NodeServiceDrainNodeProcedure
	undrainNode    = switchyardv1connect.NodeServiceUndrainNodeProcedure
	removeNode     = switchyardv1connect.NodeServiceRemoveNodeProcedure
)

// someNodes returns nodes in several states.
func someNodes() []*v1.Node {
	return []*v1.Node{
		{
			Name: "big", State: v1.NodeActive, Labels: []string{"gpu", "ssd"}, Capabilities: map[string]string{"gpu": "nvidia"}, Executors: []string{"container", "shell"},
			Running: 2, MaxParallel: 8, Cores: &v1.NodeAmount{Total: 16, Free: 12.5}, MemoryMb: &v1.NodeAmount{Total: 32768, Free: 16384}, Gpus: &v1.NodeAmount{Total: 2, Free: 1}, LastBeatAt: before(time.Second),
		},
		{Name: "old", State: v1.NodeDraining, Reason: "disk is failing", MaxParallel: 2, DrainDeadline: before(-time.Hour)},
		{Name: "gone", State: v1.NodeOffline, Reason: "no heartbeat for 20s"},
	}
}

func TestNodesShowLoadAndState(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, listNodes, &v1.ListNodesResponse{Items: someNodes(), Total: 3})
	v := newVisitor(t, f, v1.RoleViewer)
	page := v.get("/ui/nodes")
	mustBeHarmless(t, page)
	mustContain(t, page.text("#node-big"), "active", "tasks 2 of 8", "cores 3.5 of 16", "memory 16 of 32 GiB", "GPUs 1 of 2", "gpu", "gpu=nvidia", "container, shell", "needs the role operator")
	mustContain(t, page.text("#node-old"), "draining", "disk is failing", "what runs is moved", "Undrain", "never")
	mustContain(t, page.text("#node-gone"), "offline", "no heartbeat for 20s", "Remove")
	mustContain(t, page.text("#node-tabs"), "all 3", "active 1", "stale 0", "draining 1", "offline 1")
	if got := page.link("big"); got != "/ui/nodes/big" {
		t.Errorf("the node leads to %q", got)
	}
	if got := v.get("/ui/nodes?state=draining&label=").texts("#nodes tr"); len(got) != 1 {
		t.Errorf("draining nodes: %q", got)
	}
	if got := v.get("/ui/nodes?label=ssd").texts("#nodes tr"); len(got) != 1 {
		t.Errorf("nodes with a label: %q", got)
	}
	mustContain(t, v.get("/ui/nodes?label=fast").text("#nodes-end"), "No node matches.")
	servicetest.AnswerWith(f, listNodes, &v1.ListNodesResponse{})
	mustContain(t, newVisitor(t, f, v1.RoleViewer).get("/ui/nodes").text("#nodes-end"), "There are no nodes", "switchyard worker")
}

func TestNodeShowsAllFacts(t *testing.T) {
	f := &servicetest.Fake{}
	n := someNodes()[0]
	n.Machine, n.Suspicions, n.Neighbors = "m-1", 3, []*v1.NodeNeighbor{{Name: "small", Cores: 1, Gpus: []int32{0}}}
	n.Snapshot = &v1.NodeSnapshot{
		Cpu: &v1.CpuSnapshot{Cores: 16, UsagePercent: 37, LoadAvg_1M: 4.2}, Memory: &v1.MemorySnapshot{TotalMb: 32768, AvailableMb: 8192, UsagePercent: 75},
		Disk: &v1.DiskSnapshot{TotalGb: 100, AvailableGb: 40, UsagePercent: 60, IoUtilPercent: 12}, Network: &v1.NetworkSnapshot{BandwidthMbps: 1000, ThroughputMbps: 20},
		Gpus: []*v1.GpuSnapshot{
			{Index: 0, Name: "RTX 4090", MemoryMb: 24576, MemoryUsedMb: 6144, UsagePercent: 81, NumaNode: proto.Int32(1)},
			{Index: 1, Name: "RTX 4090", MemoryMb: 24576},
		},
		Numa:     []*v1.NumaSnapshot{{Index: 0, Cpus: []int32{0, 1, 2, 3}, MemoryTotalMb: 16384, MemoryFreeMb: 2048}},
		Withheld: map[string]string{"container": "the Docker engine does not answer; start it with systemctl start docker"},
		Running: []*v1.RunningAttempt{
			{RunId: "train-1", Task: "fit[2]", Claim: 1, Cores: 2, MemoryMb: 2048, Gpus: []int32{0}},
			{Cores: 1.5},
		},
		Containers: &v1.ContainerPolicy{HostNetwork: true, Mounts: []*v1.MountRule{{Path: "/data", ReadOnly: true}}},
	}
	servicetest.AnswerWith(f, getNode, &v1.GetNodeResponse{Node: n})
	servicetest.AnswerWith(f, getNodeWorkers, &v1.GetNodeWorkersResponse{
		ObservedAt: before(0), TotalClaimAttempts: 12, TotalClaimedTasks: 11, ClaimedByStatus: map[string]int32{"completed": 8, "failed": 2, "moved": 1}, RunningClaims: 1, ExpiredLeases: 4,
		ActiveClaims: []*v1.ActiveClaim{{RunId: "train-1", TaskId: "fit[2]", Claim: 1, ClaimAttempt: 5, Status: v1.TaskRunning, ClaimExpiresAt: before(-time.Minute)}},
	})
	page := newVisitor(t, f, v1.RoleOperator).get("/ui/nodes/big")
	mustBeHarmless(t, page)
	mustContain(t, page.text("#node-load"), "37% in use, load 4.2", "75% in use, 8 of 32 GiB available", "40 of 100 GiB free, 12% busy", "20 of 1000 Mbit/s", "NUMA node 0", "4 processors, 2 of 16 GiB free", "small holds 1 core, GPU 0")
	mustContain(t, page.text("#node-gpus"), "GPU 0 RTX 4090", "NUMA node 1", "load 81 of 100%", "memory 6 of 24 GiB", "held by train-1 fit[2]", "free")
	mustContain(t, page.text("#node-running"), "fit[2]", "train-1", "running", "5", "2 cores, 2048 MiB, GPU 0", "of another person's run", "1.5 cores")
	if got := page.link("fit[2]"); got != "/ui/runs/train-1/tasks/fit%5B2%5D" {
		t.Errorf("the task leads to %q", got)
	}
	mustContain(t, page.text("#node-claims"), "12 dispatch attempts, 11 kept", "8 completed, 2 failed, 1 moved", "Expired leases 4")
	mustContain(t, page.text("#node-facts"), "m-1", "use the host's network, mount \"/data\" read-only", "3 dispatches", "container : the Docker engine does not answer; start it")
}

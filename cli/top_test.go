package cli

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

func TestTopShowsUseAndRunningTasks(t *testing.T) {
	t.Parallel()
	f := fake(t)
	box := gpuBox()
	box.Snapshot = nil
	script(f, &v1.ListNodesResponse{NextPageToken: "b", Items: []*v1.Node{{
		Name: "a", State: "active", Running: 2, MaxParallel: 4, Cores: &v1.NodeAmount{Total: 4, Free: 1.5}, MemoryMb: &v1.NodeAmount{Total: 7951, Free: 7100}, Gpus: &v1.NodeAmount{},
	}}}, &v1.ListNodesResponse{Items: []*v1.Node{box, {Name: "old", State: "offline", Reason: "no heartbeat for 15s"}}})
	tasks := []*v1.ListedTask{
		{Run: "nightly-4g5h6jkm", Workflow: "nightly", Task: "train", Type: "container", State: "running", Node: "gpu-1", StartedAt: after(-80)},
		{Run: "nightly-4g5h6jkm", Workflow: "nightly", Task: "each[3]", Type: "shell", State: "running", Node: "a", StartedAt: after(2)},
	}
	script(f, &v1.ListTasksResponse{NextPageToken: "more", Items: tasks[:1]}, &v1.ListTasksResponse{Items: tasks[1:]})
	showsGolden(t, "top", []string{"text"}, "top", "--gateway", f.url)
	script(f, &v1.GetNodeResponse{Node: box})
	script(f, &v1.ListTasksResponse{Items: tasks[:1]})
	showsGolden(t, "top-node", []string{"text", "json"}, "top", "--node", "gpu-1", "--gateway", f.url)
	if got := requests[*v1.ListTasksRequest](f); !proto.Equal(got[len(got)-1], &v1.ListTasksRequest{State: "running", Node: "gpu-1", PageSize: 50}) {
		t.Errorf("asked for %v", got)
	}
	script(f, &v1.ListTasksResponse{})
	run(t, "top", "--node", "gpu-1", "--gateway", f.url).prints(t, exit.CodeDone, "no tasks are running\n")
	run(t, "top", "--limit", "0", "--gateway", f.url).ends(t, exit.CodeUsage, "1 to 1000")
}

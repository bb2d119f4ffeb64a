package vps

import (
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
)

var noon = timestamppb.New(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))

// fleet returns runs with one machine, with several tasks, awaiting approval, rejected, without machines and with a fan-out.
func fleet() *fakeRuns {
	spec := &structpb.Struct{Fields: map[string]*structpb.Value{"image": structpb.NewStringValue("ubuntu"), "idleTimeout": structpb.NewStringValue("2h")}}
	def := func(task string) *v1.Definition {
		return &v1.Definition{Tasks: map[string]*v1.TaskDefinition{task: {Type: v1.TypeVPS, Spec: spec, Resources: &v1.Resources{Cores: proto.Float64(2)}}}}
	}
	return &fakeRuns{
		runs: map[string]*v1.Run{
			"desk-1": {Id: "desk-1", Name: "desk", State: v1.RunRunning, SubmittedBy: "ann", CreatedAt: noon, Tasks: map[string]*v1.Task{
				"vps": {Type: v1.TypeVPS, State: v1.TaskRunning, Node: "n1", StartedAt: noon, Notice: "its node is silent", Result: &v1.TaskResult{Container: "abc"}},
			}},
			"lab-1": {Id: "lab-1", Name: "lab", State: v1.RunRunning, Tasks: map[string]*v1.Task{
				"build": {Type: v1.TypeShell, State: v1.TaskRunning}, "gone": {Type: v1.TypeVPS, State: v1.TaskLost, Reason: v1.ReasonNodeLost, CompletedAt: noon},
				"each": {Type: v1.TypeVPS, State: v1.TaskRunning, Count: proto.Int32(2), Instances: []*v1.Instance{{State: v1.TaskRunning, Node: "n1"}, {Index: 1, State: v1.TaskRunning, Node: "n2"}}},
			}},
			"new-1": {Id: "new-1", Name: "new", State: v1.RunPendingApproval, Tasks: map[string]*v1.Task{"vps": {Type: v1.TypeVPS, State: v1.TaskPending}}},
			"bad-1": {Id: "bad-1", State: v1.RunRejected, CompletedAt: noon, Tasks: map[string]*v1.Task{"vps": {Type: v1.TypeVPS, State: v1.TaskPending}}},
			"ci-1":  {Id: "ci-1", Tasks: map[string]*v1.Task{"build": {Type: v1.TypeShell}}},
			"fan-1": {Id: "fan-1", Tasks: map[string]*v1.Task{"each": {Type: v1.TypeVPS, Count: proto.Int32(2)}}},
		},
		defs: map[string]*v1.Definition{"desk-1": def("vps"), "lab-1": def("each")},
	}
}

func TestGetShowsAMachine(t *testing.T) {
	t.Parallel()
	get := func(door Door, id, task string) *v1.Vps {
		return servicetest.Do(t, t.Context(), Service{Runs: fleet(), SSH: door}.GetVps, &v1.GetVpsRequest{Id: id, Task: task}).GetVps()
	}
	want := &v1.Vps{
		Id: "desk-1", Name: "desk", Task: "vps", Status: "running", Node: "n1", Image: "ubuntu", VpsBackend: "docker", ContainerName: "abc",
		SshUser: "vps.desk-1", SshCommand: "switchyard ssh desk-1 vps", SubmittedBy: "ann", CreatedAt: noon, StartedAt: noon,
		Resources: &v1.Resources{Cores: proto.Float64(2)}, IdleTimeout: "2h", Notice: "its node is silent",
	}
	if got := get(Door{Host: "unused"}, "desk-1", ""); !proto.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	want.SshHost, want.SshPort, want.SshCommand = "sy.example.com", 7222, "ssh -p 7222 vps.desk-1@sy.example.com"
	if got := get(Door{"sy.example.com", 7222}, "desk-1", "vps"); !proto.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if got := get(Door{Port: 22}, "lab-1", "each[1]"); got.GetNode() != "n2" || got.GetTask() != "each[1]" || got.GetSshCommand() != "ssh -p 22 'each[1].lab-1@GATEWAY'" || got.GetImage() != "ubuntu" {
		t.Errorf("an instance: %v", got)
	}
	if got := get(Door{}, "lab-1", "gone"); got.GetStatus() != "lost" || got.GetCompletedAt() == nil || got.GetReason() != "node_lost" {
		t.Errorf("a lost one: %v", got)
	}
	if got := get(Door{}, "new-1", ""); got.GetStatus() != "pending_approval" || got.GetCompletedAt() != nil {
		t.Errorf("one that waits: %v", got)
	}
	if got := get(Door{}, "bad-1", ""); got.GetStatus() != "rejected" || got.GetCompletedAt() == nil {
		t.Errorf("one that was rejected: %v", got)
	}
}

func TestGetShowsTheSourceOfAVirtualMachine(t *testing.T) {
	t.Parallel()
	f := fleet()
	task := f.runs["desk-1"].GetTasks()["vps"]
	f.defs["desk-1"].Tasks["vps"].Spec = &structpb.Struct{Fields: map[string]*structpb.Value{
		"backend": structpb.NewStringValue("qemu"), "vmImage": structpb.NewStringValue("/srv/debian.qcow2"), "vmDiskSize": structpb.NewStringValue("50G"),
	}}
	for _, c := range []struct{ state, notice, address string }{
		{v1.TaskRunning, "", v1.GuestAddress}, {v1.TaskPaused, "", v1.GuestAddress}, {v1.TaskLost, "its node is silent", v1.GuestAddress},
		{v1.TaskAssigned, "", ""}, {v1.TaskCompleted, "", ""}, {v1.TaskLost, "", ""},
	} {
		task.State, task.Notice = c.state, c.notice
		got := servicetest.Do(t, t.Context(), Service{Runs: f}.GetVps, &v1.GetVpsRequest{Id: "desk-1"}).GetVps()
		if got.GetVpsBackend() != "qemu" || got.GetVmImage() != "/srv/debian.qcow2" || got.GetVmDiskSize() != "50G" || got.GetImage() != "" || got.GetVmIp() != c.address {
			t.Errorf("%s: %v", c.state, got)
		}
	}
	f.defs["desk-1"].Tasks["vps"].Spec = &structpb.Struct{Fields: map[string]*structpb.Value{"environment": structpb.NewStringValue("tools")}}
	if got := servicetest.Do(t, t.Context(), Service{Runs: f}.GetVps, &v1.GetVpsRequest{Id: "desk-1"}).GetVps(); got.GetEnvironment() != "tools" || got.GetVpsBackend() != "docker" {
		t.Errorf("%v", got)
	}
}

func TestMachinesAreFoundByNameOrAsTheOnlyOne(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id, task string
		code     connect.Code
		says     string
	}{
		"no run":          {"x-1", "", connect.CodeNotFound, "no run"},
		"no machine":      {"ci-1", "", connect.CodeNotFound, "no machine"},
		"several":         {"lab-1", "", connect.CodeInvalidArgument, "name the task"},
		"instances":       {"fan-1", "", connect.CodeInvalidArgument, "such as each[0]"},
		"instances named": {"lab-1", "each", connect.CodeInvalidArgument, "such as each[0]"},
		"another type":    {"lab-1", "build", connect.CodeInvalidArgument, "of type shell"},
		"no task":         {"lab-1", "buld", connect.CodeNotFound, "no task"},
		"no instance":     {"lab-1", "each[2]", connect.CodeNotFound, "no task"},
	} {
		runs := fleet()
		servicetest.Refused(t, t.Context(), Service{Runs: runs}.KillVps, &v1.KillVpsRequest{Id: test.id, Task: test.task}, test.code, test.says)
		if len(runs.steered) > 0 {
			t.Errorf("%s: %v", name, runs.steered)
		}
	}
}

func TestMachinesAreStoppedRestartedAndKilled(t *testing.T) {
	t.Parallel()
	runs := fleet()
	s := Service{Runs: runs}
	if res := servicetest.Do(t, t.Context(), s.StopVps, &v1.StopVpsRequest{Id: "desk-1", Reason: "done"}); res.GetTask() != "vps" || res.GetId() != "desk-1" {
		t.Error(res)
	}
	servicetest.Do(t, t.Context(), s.RestartVps, &v1.RestartVpsRequest{Id: "lab-1", Task: "each[1]"})
	servicetest.Do(t, t.Context(), s.KillVps, &v1.KillVpsRequest{Id: "lab-1", Task: "gone", Reason: "away"})
	if want := []string{"stop desk-1 vps done", "restart lab-1 each[1] ", "kill lab-1 gone away"}; !slices.Equal(runs.steered, want) {
		t.Errorf("%q", runs.steered)
	}
}

func TestListShowsMachinesOfAllRuns(t *testing.T) {
	t.Parallel()
	tasks := &fakeTasks{page: &v1.ListTasksResponse{NextPageToken: "more", Warnings: []string{"one is left out"}, Items: []*v1.ListedTask{
		{Run: "desk-1", Task: "vps", State: v1.TaskRunning}, {Run: "lab-1", Task: "each[1]", State: v1.TaskRunning, Node: "n2"},
		{Run: "gone-1", Task: "vps"}, {Run: "new-1", Task: "vps", State: v1.TaskPending},
	}}}
	res := servicetest.Do(t, t.Context(), Service{Runs: fleet(), Tasks: tasks}.ListVps, &v1.ListVpsRequest{Status: "running", Node: "n1", Name: "desk", PageSize: 7, PageToken: "t"})
	if want := (&v1.ListTasksRequest{Type: "vps", State: "running", Node: "n1", Workflow: "desk", PageSize: 7, PageToken: "t"}); !proto.Equal(tasks.asked, want) {
		t.Errorf("asked for %v", tasks.asked)
	}
	var got []string
	for _, vps := range res.GetItems() {
		got = append(got, strings.Join([]string{vps.GetId(), vps.GetTask(), vps.GetStatus(), vps.GetNode(), vps.GetImage()}, " "))
	}
	if want := []string{"desk-1 vps running n1 ubuntu", "lab-1 each[1] running n2 ubuntu", "new-1 vps pending_approval  "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if res.GetNextPageToken() != "more" || len(res.GetWarnings()) != 1 {
		t.Errorf("%v", res)
	}
}

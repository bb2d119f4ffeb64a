package cli

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/cli/exit"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

func (f *fakeGateway) GetRunDefinition(context.Context, *connect.Request[v1.GetRunDefinitionRequest]) (*connect.Response[v1.GetRunDefinitionResponse], error) {
	if f.definition == nil {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no run"))
	}
	return connect.NewResponse(&v1.GetRunDefinitionResponse{Id: fakeRun, Definition: f.definition}), nil
}

func TestRunsGetTask(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.definition = &v1.Definition{Name: "nightly", Tasks: map[string]*v1.TaskDefinition{"fetch": {Type: "shell"}}}
	output, _ := structpb.NewStruct(map[string]any{"files": []any{"a", "b"}})
	build := f.run.Tasks["build"]
	build.Result.Stdout, build.Result.StdoutTruncated, build.Result.Output, build.Result.PeakMemoryMb, build.Result.Warning = "\x1b[2Jok\n", true, output, 12, "the kernel killed a process"
	build.Attempts = []*v1.Attempt{
		{Node: "local-1", State: "failed", Reason: "exit_code", Error: "exit code 1", ExitCode: 1, AssignedAt: after(2.1), StartedAt: after(2.2), CompletedAt: after(5)},
		{Attempt: 1, Node: "local-2", State: "failed", Reason: "exit_code", Error: "exit code 2", ExitCode: 2, AssignedAt: after(6), StartedAt: after(6.1), CompletedAt: after(8)},
	}
	numa := int32(1)
	build.Attempts[1].Gpus, build.Attempts[1].NumaNode, build.Attempts[1].Container = []int32{0, 2}, &numa, "3f2a9c0d1e4b"
	build.CreatedAt, build.QueuedAt, build.DeadLetteredAt = after(0), after(5.5), after(8)
	build.Result.ContextUpdate, _ = structpb.NewStruct(map[string]any{"tag": "v7"})
	count := int32(2)
	f.run.Tasks["each"] = &v1.Task{
		State: "completed", Type: "shell", Count: &count, Counts: map[string]int32{"completed": 1, "failed": 1}, CompletedAt: after(8), Result: &v1.TaskResult{ExitCode: 7},
	}
	deploy := f.run.Tasks["deploy"]
	deploy.State, deploy.Reason, deploy.Error, deploy.CompletedAt, deploy.Node, deploy.StartedAt = "running", "", "", nil, "local-1", after(8)
	deploy.Workload, deploy.LeaseUntil = &v1.Workload{Container: "3f2a9c0d1e4b", Image: "alpine:3"}, after(20)
	f.page, f.instances = 10, map[string][]*v1.Instance{"each": {{}, {Index: 1, State: "completed", Node: "local-1", Result: &v1.TaskResult{Stdout: "one\n"}}}}
	for name, args := range map[string][]string{
		"runs-get-task": {"build"}, "runs-get-running-task": {"deploy"}, "runs-get-running-task-json": {"deploy", "-o", "json"}, "runs-get-task-json": {"build", "-o", "json"}, "runs-get-instance": {"each[1]"}, "runs-get-fanned-task": {"each"}, "runs-get-definition": {"--definition"},
	} {
		got := run(t, append([]string{"runs", "get", "nightly", "--gateway", f.url}, args...)...)
		if got.code != exit.CodeDone || got.stderr != "" {
			t.Errorf("%v: %+v", args, got)
		}
		golden.Check(t, "testdata/"+name+".golden", got.stdout)
	}
	for _, name := range []string{"nope", "each[2]"} {
		run(t, "runs", "get", "nightly", name, "--gateway", f.url).ends(t, exit.CodeUsage, "has no")
	}
}

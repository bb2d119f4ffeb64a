package cli

import (
	"errors"
	"maps"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

var (
	errNoRun    = errors.New(`there is no run "nope"`)
	errStopping = errors.New("the gateway is shutting down")
)

// nightly gives a fake gateway a run of four tasks: fetch completes, build fails after a retry, deploy is skipped, and
// notify completes.
func nightly(f *fakeGateway) {
	output, _ := structpb.NewStruct(map[string]any{"files": []any{"a", "b"}})
	context, _ := structpb.NewStruct(map[string]any{"channel": "stable"})
	f.run = &v1.Run{
		Id: "nightly-4g5h6jkm", Name: "nightly", State: "failed", Reason: "task_failed",
		Error:     `task "build" failed: exit code 2 (attempt 1 on local-2)`,
		CreatedAt: after(0), CompletedAt: after(9), Context: context, IdempotencyKey: "night of 2026-07-24",
		Tasks: map[string]*v1.Task{
			"fetch": {
				State: "completed", Type: "shell", Node: "local-1", AssignedAt: after(0.1), StartedAt: after(0.2), CompletedAt: after(2),
				Result: &v1.TaskResult{Stdout: "<fetched>\n", Output: output, CpuSeconds: 0.25},
			},
			"build": {
				State: "dead_letter", Reason: "exit_code", Type: "shell", Node: "local-2", Attempt: 1, Error: "exit code 2", DependsOn: []string{"fetch"},
				AssignedAt: after(6), StartedAt: after(6.1), CompletedAt: after(8),
				Result: &v1.TaskResult{ExitCode: 2, Stderr: "main.go:3: unused\nmain.go:9: shadowed\n"},
			},
			"deploy": {State: "skipped", Reason: "upstream", Type: "shell", Error: `task "build" failed`, DependsOn: []string{"build"}, CompletedAt: after(8)},
			"notify": {
				State: "completed", Type: "shell", Node: "local-1", DependsOn: []string{"build"},
				AssignedAt: after(8), StartedAt: after(8.1), CompletedAt: after(9), Result: &v1.TaskResult{},
			},
		},
	}
	running := func(tasks map[string]*v1.Task) *v1.WatchRunResponse {
		return &v1.WatchRunResponse{TaskCount: 4, Run: &v1.Run{
			Id: f.run.Id, Name: f.run.Name, State: "running", CreatedAt: f.run.CreatedAt, Tasks: tasks,
		}}
	}
	first := map[string]*v1.Task{"fetch": {State: "queued"}}
	for _, name := range []string{"build", "deploy", "notify"} {
		first[name] = &v1.Task{State: "pending", DependsOn: f.run.Tasks[name].DependsOn}
	}
	build := &v1.Task{State: "running", Node: "local-1", DependsOn: []string{"fetch"}, AssignedAt: after(2.1), StartedAt: after(2.2)}
	again := &v1.Task{
		State: "queued", Node: "local-1", Attempt: 1, Error: "exit code 1", DependsOn: []string{"fetch"}, ScheduledAfter: after(6),
		Result: &v1.TaskResult{ExitCode: 1},
	}
	last := running(maps.Clone(f.run.Tasks))
	last.Run.State, last.Run.Reason, last.Run.Error, last.Run.CompletedAt = f.run.State, f.run.Reason, f.run.Error, f.run.CompletedAt
	f.messages = []*v1.WatchRunResponse{
		running(first),
		running(map[string]*v1.Task{"fetch": {State: "running", Node: "local-1", AssignedAt: after(0.1), StartedAt: after(0.2)}}),
		running(map[string]*v1.Task{"fetch": f.run.Tasks["fetch"], "build": build}),
		running(map[string]*v1.Task{"build": again}),
		last,
	}
	f.logs = []*v1.LogEntry{
		{Task: "fetch", Stream: "stdout", Data: []byte("<fet")},
		{Task: "build", Stream: "stderr", Data: []byte("main.go:3: unused\nmain")},
		{Task: "fetch", Stream: "stdout", Data: []byte("ched>\n")},
		{Task: "build", Stream: "stderr", Data: []byte(".go:9: shadowed")},
	}
}

// completed gives a fake gateway the nightly run with a successful end.
func completed(f *fakeGateway) {
	nightly(f)
	f.run.State, f.run.Reason, f.run.Error = "completed", "", ""
	last := f.messages[len(f.messages)-1].Run
	last.State, last.Reason, last.Error = "completed", "", ""
}

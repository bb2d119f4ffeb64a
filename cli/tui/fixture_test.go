package tui

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

func joined(lines []string) string { return strings.Join(lines, "\n") + "\n" }

// begin is the time at which the runs of the tests were submitted.
var begin = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func after(seconds float64) *timestamppb.Timestamp {
	return timestamppb.New(begin.Add(time.Duration(seconds * float64(time.Second))))
}

var plain = Style{Zone: time.UTC}

// nightly returns a run in progress, with a task in every kind of state.
func nightly() *v1.Run {
	return &v1.Run{
		Id: "nightly-4g5h6jkm", Name: "nightly", State: "running", CreatedAt: after(0),
		Tasks: map[string]*v1.Task{
			"fetch": {
				State: "completed", Node: "local-1", AssignedAt: after(0), StartedAt: after(0.1), CompletedAt: after(2.5),
				Result: &v1.TaskResult{},
			},
			"build": {State: "running", Node: "local-2", Attempt: 1, Error: "exit code 1", DependsOn: []string{"fetch"}, AssignedAt: after(4), StartedAt: after(4.1)},
			"lint": {
				State: "failed", Reason: "exit_code", Error: "exit code 2: \x1b[31mbad\x1b[0m\tstyle\nstandard error before that:\nlint 1.2", Node: "local-1", DependsOn: []string{"fetch"},
				AssignedAt: after(2.6), StartedAt: after(2.7), CompletedAt: after(3),
				Result: &v1.TaskResult{ExitCode: 2, Stdout: "checking\n", Stderr: "main.go:3: unused\nmain.go:9: \x1b[31mshadowed\x1b[0m\r\n\n"},
			},
			"pack":    {State: "assigned", Node: "local-1", DependsOn: []string{"fetch"}, AssignedAt: after(4)},
			"scan":    {State: "queued", Error: "0 of 2 nodes have 2 free GPUs", DependsOn: []string{"fetch"}},
			"flaky":   {State: "queued", Attempt: 1, Node: "local-2", Error: "exit code 1", DependsOn: []string{"fetch"}, ScheduledAfter: after(9)},
			"deploy":  {State: "pending", DependsOn: []string{"build", "pack"}},
			"publish": {State: "skipped", Reason: "upstream", Error: `task "lint" failed`, DependsOn: []string{"lint"}, CompletedAt: after(3)},
			"clean":   {State: "pending", Finally: true},
			"gone":    {State: "cancelled", Reason: "run_cancelled", DependsOn: []string{"lint"}, CompletedAt: after(3)},
		},
	}
}

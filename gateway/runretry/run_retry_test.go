package runretry

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestNewLimitsNeedAnAgentAndANumber(t *testing.T) {
	t.Parallel()
	v := runview.NewView("agents-1")
	v.Update([]*historyv1.StatusResponse{{Run: &v1.Run{Tasks: map[string]*v1.Task{"writer": {Type: v1.TypeSubagent}, "build": {Type: v1.TypeShell}}}, TaskCount: 2}}, nil)
	for _, test := range []struct {
		task   string
		limits *v1.AgentLimits
		want   string // "" if they are accepted
	}{
		{"writer", &v1.AgentLimits{MaxTurns: 9}, ""}, {"writer", &v1.AgentLimits{MaxCostUsd: 0.5}, ""},
		{"writter", &v1.AgentLimits{MaxTurns: 9}, "did you mean writer?"}, {"build", &v1.AgentLimits{MaxTurns: 9}, "has type shell"},
		{"writer", &v1.AgentLimits{}, "greater than 0"}, {"writer", &v1.AgentLimits{MaxCostUsd: -1}, "greater than 0"},
		{"writer", &v1.AgentLimits{MaxCostUsd: math.Inf(1)}, "greater than 0"}, {"writer", &v1.AgentLimits{MaxCostUsd: math.NaN()}, "greater than 0"},
	} {
		err := checkAgentLimits(v, map[string]*v1.AgentLimits{test.task: test.limits})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %v: %v, want %q", test.task, test.limits, err, test.want)
		}
	}
}

func TestNewLimitsReplaceThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	spec, err := structpb.NewStruct(map[string]any{"prompt": "write", "maxTurns": 3, "maxCostUsd": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"writer": {Spec: spec}, "judge": {}}}
	got := withAgentLimits(def, map[string]*v1.AgentLimits{"writer": {MaxCostUsd: 5}, "judge": {MaxTurns: 100}}).GetTasks()
	writer, judge := got["writer"].GetSpec().AsMap(), got["judge"].GetSpec().AsMap()
	if writer["maxCostUsd"] != 5.0 || writer["maxTurns"] != 3.0 || writer["prompt"] != "write" || judge["maxTurns"] != 100.0 || judge["maxCostUsd"] != nil {
		t.Errorf("the limits are %v and %v", writer, judge)
	}
	if spec.AsMap()["maxCostUsd"] != 0.5 {
		t.Error("the definition itself was changed")
	}
}

// TestFinallyRunsAloneOnlyAfterTheRunHasBegun checks that a run that nothing of has started is not cleaned up.
func TestFinallyRunsAloneOnlyAfterTheRunHasBegun(t *testing.T) {
	t.Parallel()
	begun, one := timestamppb.Now(), int32(1)
	for what, test := range map[string]struct {
		state string
		build *v1.Task
		err   string
	}{
		"rejected before it began":  {v1.RunRejected, &v1.Task{State: v1.TaskRejected}, "ended before it began"},
		"cancelled before it began": {v1.RunCancelled, &v1.Task{State: v1.TaskCancelled}, "ended before it began"},
		"cancelled later":           {v1.RunCancelled, &v1.Task{State: v1.TaskCancelled, QueuedAt: begun}, ""},
		"a fan-out was cancelled":   {v1.RunCancelled, &v1.Task{State: v1.TaskCancelled, Count: &one}, ""},
		"an earlier generation ran": {v1.RunRejected, &v1.Task{State: v1.TaskRejected, Attempts: []*v1.Attempt{{}}}, ""},
		"all was skipped":           {v1.RunCompleted, &v1.Task{State: v1.TaskSkipped}, ""},
	} {
		v := runview.NewView("clean-1")
		v.Update([]*historyv1.StatusResponse{{Run: &v1.Run{Id: "clean-1", State: test.state, Tasks: map[string]*v1.Task{
			"build": test.build, "tidy": {State: v1.TaskSkipped, Finally: true},
		}}, TaskCount: 2}}, nil)
		_, err := rerunOf(v, &v1.RetryRunRequest{FinallyOnly: true})
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", what, err, test.err)
		}
	}
}

// TestRerunRepeatsWhatDidNotComplete checks what the next generation of an ended run repeats.
func TestRerunRepeatsWhatDidNotComplete(t *testing.T) {
	t.Parallel()
	raised := map[string]*v1.AgentLimits{"writer": {MaxTurns: 9}}
	for what, test := range map[string]struct {
		run, writer string // states; the task build has completed
		from        []string
		limits      map[string]*v1.AgentLimits
		want        *historyv1.Rerun
		err         string
	}{
		"a failed run":               {v1.RunFailed, v1.TaskFailed, nil, nil, &historyv1.Rerun{Failed: true}, ""},
		"named tasks":                {v1.RunCompleted, v1.TaskCompleted, []string{"writer", "build", "writer"}, nil, &historyv1.Rerun{From: []string{"build", "writer"}}, ""},
		"an unknown task":            {v1.RunFailed, v1.TaskFailed, []string{"biuld"}, nil, nil, "did you mean build?"},
		"a completed run":            {v1.RunCompleted, v1.TaskFailed, nil, nil, nil, "has completed"},
		"a failed agent, raised":     {v1.RunCompleted, v1.TaskFailed, nil, raised, &historyv1.Rerun{Failed: true}, ""},
		"a completed agent, raised":  {v1.RunCompleted, v1.TaskCompleted, nil, raised, nil, "has completed"},
		"nothing that has not ended": {v1.RunFailed, v1.TaskCompleted, nil, nil, nil, "every task of run agents-1 has completed"},
	} {
		v := runview.NewView("agents-1")
		v.Update([]*historyv1.StatusResponse{{Run: &v1.Run{Id: "agents-1", State: test.run, Tasks: map[string]*v1.Task{
			"writer": {Type: v1.TypeSubagent, State: test.writer}, "build": {State: v1.TaskCompleted},
		}}, TaskCount: 2}}, nil)
		got, err := rerunOf(v, &v1.RetryRunRequest{From: test.from, Limits: test.limits})
		if !proto.Equal(got, test.want) || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, %v; want %v, %q", what, got, err, test.want, test.err)
		}
	}
}

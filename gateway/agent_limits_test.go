package gateway

import (
	"math"
	"strings"
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

func (f *fixture) againWith(t *testing.T, run string, limits map[string]*v1.AgentLimits) error {
	t.Helper()
	_, err := f.client.RetryRun(t.Context(), connect.NewRequest(&v1.RetryRunRequest{Id: run, Limits: limits}))
	return err
}

// TestRetryRunRaisesLimitsOfAgents checks that the limits of a retry replace those of the definition from that
// generation on.
func TestRetryRunRaisesLimitsOfAgents(t *testing.T) {
	t.Parallel()
	f := start(t)
	res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: `
name: agents
tasks:
  writer: { type: subagent, spec: { prompt: write, model: m, maxTurns: 3, maxCostUsd: 0.5 } }
  judge: { type: subagent, spec: { prompt: judge, model: m } }
  build: { type: shell, spec: { command: "true" } }
`}}))
	if err != nil {
		t.Fatal(err)
	}
	id := res.Msg.GetId()
	set(t, id, "build", 1, &v1.Task{State: "completed", Type: "shell"})
	set(t, id, "writer", 1, &v1.Task{State: "failed", Reason: v1.ReasonMaxCost, Type: "subagent"})
	set(t, id, "judge", 1, &v1.Task{State: "skipped", Type: "subagent"})
	end(t, id, "failed")

	for what, test := range map[string]struct {
		limits map[string]*v1.AgentLimits
		code   connect.Code
		text   string
	}{
		"an unknown task":  {map[string]*v1.AgentLimits{"writter": {MaxTurns: 9}}, connect.CodeNotFound, "did you mean writer?"},
		"another type":     {map[string]*v1.AgentLimits{"build": {MaxTurns: 9}}, connect.CodeInvalidArgument, "has type shell"},
		"no limit":         {map[string]*v1.AgentLimits{"writer": {}}, connect.CodeInvalidArgument, "greater than 0"},
		"an endless limit": {map[string]*v1.AgentLimits{"writer": {MaxCostUsd: math.Inf(1)}}, connect.CodeInvalidArgument, "greater than 0"},
		"a negative limit": {map[string]*v1.AgentLimits{"writer": {MaxCostUsd: -1}}, connect.CodeInvalidArgument, ""},
	} {
		err := f.againWith(t, id, test.limits)
		wantCode(t, what, err, test.code)
		if err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := f.againWith(t, id, map[string]*v1.AgentLimits{"writer": {MaxCostUsd: 5}, "judge": {MaxTurns: 100}}); err != nil {
		t.Fatal(err)
	}
	spec := func(task string) map[string]any {
		return f.inputOf(t, id).GetDefinition().GetTasks()[task].GetSpec().AsMap()
	}
	if writer, judge := spec("writer"), spec("judge"); writer["maxCostUsd"] != 5.0 || writer["maxTurns"] != 3.0 || writer["prompt"] != "write" || judge["maxTurns"] != 100.0 || judge["maxCostUsd"] != nil {
		t.Errorf("the limits are %v and %v", writer, judge)
	}
	set(t, id, "writer", 2, &v1.Task{State: "failed", Type: "subagent"})
	end(t, id, "failed")
	if err := f.againWith(t, id, nil); err != nil {
		t.Fatal(err)
	}
	if writer := spec("writer"); writer["maxCostUsd"] != 5.0 {
		t.Errorf("the generation after that has %v", writer)
	}
	end(t, id, "completed")
}

// TestRetryRunContinuesAgentsOfACompletedRun raises the limit of a failed agent whose run completed regardless.
func TestRetryRunContinuesAgentsOfACompletedRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: `
name: tolerant-agents
tasks:
  writer: { type: subagent, continueOnError: true, spec: { prompt: write, model: m, maxTurns: 3 } }
  judge: { type: subagent, spec: { prompt: judge, model: m } }
`}}))
	if err != nil {
		t.Fatal(err)
	}
	id := res.Msg.GetId()
	set(t, id, "writer", 1, &v1.Task{State: "failed", Reason: v1.ReasonMaxTurns, Type: "subagent"})
	set(t, id, "judge", 1, &v1.Task{State: "completed", Type: "subagent"})
	end(t, id, "completed")
	wantCode(t, "an agent that has completed", f.againWith(t, id, map[string]*v1.AgentLimits{"judge": {MaxTurns: 9}}), connect.CodeAborted)
	if err := f.againWith(t, id, map[string]*v1.AgentLimits{"writer": {MaxTurns: 9}}); err != nil {
		t.Fatal(err)
	}
	if in := f.inputOf(t, id); in.GetGeneration() != 1 || !in.GetRerun().GetFailed() {
		t.Errorf("the input is %v", in)
	}
}

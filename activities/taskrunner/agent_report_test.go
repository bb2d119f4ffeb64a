package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/secrets/mask"
	"switchyard/activities/store/storetest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// If an agent fails without an exit code, the answer has the executor's reason, unless the agent was stopped or ran out
// of memory.
func TestInterpretTellsWhyAnAgentFailed(t *testing.T) {
	t.Parallel()
	failure := &executor.Failure{Reason: v1.ReasonMaxCost, Err: errors.New("the agent has cost $1.20, and may cost $1")}
	for name, test := range map[string]struct {
		result   executor.Result
		state    string
		reason   string
		exitCode int32
	}{
		"alone":         {executor.Result{Failure: failure}, "failed", "max_cost", -1},
		"of a program":  {executor.Result{Failure: failure, ExitCode: 143, Signal: "SIGTERM"}, "failed", "max_cost", 143},
		"stopped":       {executor.Result{Failure: failure, Stopped: true}, "failed", "timeout", 0},
		"out of memory": {executor.Result{Failure: failure, ExitCode: 137, OOMKilled: true}, "killed_oom", "oom", 137},
	} {
		res, err := interpret(endedBy(errTimeout), test.result, nil)
		if err != nil || res.GetState() != test.state || res.GetReason() != test.reason || res.GetResult().GetExitCode() != test.exitCode {
			t.Errorf("%s: got %v, %v", name, res, err)
		}
		if test.reason == "max_cost" && res.GetError() != failure.Err.Error() {
			t.Errorf("%s: the error is %q", name, res.GetError())
		}
	}
}

func TestAgentReportIsMaskedAndBounded(t *testing.T) {
	t.Parallel()
	usage := &v1.AgentUsage{Model: "m", Turns: 500}
	report := &executor.AgentReport{Usage: usage}
	for i := range 500 {
		report.Events = append(report.Events, &historyv1.AgentEvent{
			Event: v1.EventToolCall, Turn: int32(i), Tool: "shell", Error: "refused hunter2secret " + strings.Repeat("é", 400),
		})
	}
	for name, test := range map[string]struct {
		limit, least, most int // number of events
	}{"few tasks": {24 << 10, 40, 100}, "many tasks": {100, 10, 15}} {
		w := &work{attempt: &attempt{req: &historyv1.ExecuteRequest{InlineLimit: int32(test.limit)}}, secrets: secretEnv{masks: mask.New([]string{"hunter2secret"})}}
		res := &historyv1.ExecuteResponse{State: v1.TaskCompleted, Result: &v1.TaskResult{}}
		w.addAgentReport(res, report)
		events, size := res.GetAgentEvents(), 0
		for i, e := range events {
			size += proto.Size(e)
			if want := int32(500 - len(events) + i); e.GetTurn() != want || strings.Contains(e.GetError(), "hunter2") || len(e.GetError()) > maxAgentText {
				t.Fatalf("%s: event %d is %v, want turn %d", name, i, e, want)
			}
		}
		if len(events) < test.least || len(events) > test.most || size > maxAgentEventBytes || res.GetResult().GetAgent() != usage {
			t.Errorf("%s: %d events of %d bytes", name, len(events), size)
		}
	}
	if !strings.Contains(report.Events[0].GetError(), "hunter2secret") {
		t.Error("the report of the executor was changed")
	}
	moved := &historyv1.ExecuteResponse{State: v1.AttemptMoved}
	w := &work{attempt: &attempt{req: &historyv1.ExecuteRequest{}}}
	w.addAgentReport(moved, report)
	if moved.GetResult() != nil || len(moved.GetAgentEvents()) == 0 {
		t.Errorf("an attempt that is handed back reports %v", moved)
	}
	w.addAgentReport(moved, nil)
}

// The events of an agent travel with the answer but are not in its record. The usage is in both.
func TestAgentEventsAreNotInTheRecord(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, t.TempDir())
	n := &Node{Store: s}
	for attempt, stdout := range []string{"small", strings.Repeat("x", 5000)} {
		res := &historyv1.ExecuteResponse{
			State: v1.TaskCompleted, Result: &v1.TaskResult{Stdout: stdout, Agent: &v1.AgentUsage{Turns: 3}},
			AgentEvents: []*historyv1.AgentEvent{{Event: v1.EventTurn, Turn: 3}},
		}
		req := &historyv1.ExecuteRequest{RunId: "r-1", Task: "t", Attempt: int32(attempt), InlineLimit: 1000}
		got, err := n.records().keepResult(context.Background(), req, &membersOf(req)[0], res)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.GetAgentEvents()) != 1 || got.GetResult().GetAgent().GetTurns() != 3 || (got.GetRecord() != "") != (len(stdout) > 1000) {
			t.Errorf("the answer is %v", got)
		}
		var record historyv1.ExecuteResponse
		if err := s.GetMessage(t.Context(), fmt.Sprintf("runs/r-1/results/t.0.%d", attempt), &record); err != nil {
			t.Fatal(err)
		}
		if len(record.GetAgentEvents()) > 0 || record.GetResult().GetAgent().GetTurns() != 3 {
			t.Errorf("the record is %v", &record)
		}
	}
}

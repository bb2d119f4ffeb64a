package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
)

// agentAnswer returns the answer of an agent's attempt with a number of turns and one tool call in each.
func agentAnswer(turns int) *historyv1.ExecuteResponse {
	res := &historyv1.ExecuteResponse{StartedAt: timestamppb.New(time.Unix(1, 0)), Result: &v1.TaskResult{Output: &structpb.Struct{}, Agent: &v1.AgentUsage{Turns: int32(turns)}}}
	for n := range turns {
		at := timestamppb.New(time.Unix(int64(2*n+2), 0))
		res.AgentEvents = append(res.AgentEvents,
			&historyv1.AgentEvent{At: at, Event: v1.EventTurn, Turn: int32(n + 1), TookMs: 500, InputTokens: 1200, OutputTokens: 30, CostUsd: 0.25},
			&historyv1.AgentEvent{At: at, Event: v1.EventToolCall, Turn: int32(n + 1), TookMs: 1500, Tool: "shell", Error: "exit code 1"})
	}
	return res
}

// The turns and calls of an attempt are logged once, in order, between its start and its end, however it ends.
func TestAgentEventsAreLoggedBeforeTheEndOfTheirAttempt(t *testing.T) {
	t.Parallel()
	now := time.Unix(99, 0)
	turn := `turn {"began":"1970-01-01T00:00:02Z","costUsd":0.25,"inputTokens":1200,"outputTokens":30,"tookMs":500,"turn":1}`
	call := `tool_call {"began":"1970-01-01T00:00:02Z","error":"exit code 1","tookMs":1500,"tool":"shell","turn":1}`
	for name, test := range map[string]struct {
		ended dag.Ended
		rec   dag.Record
		want  []string
	}{
		"completed": {dag.Ended{State: v1.TaskCompleted}, dag.Record{State: v1.TaskCompleted}, []string{`completed {"exitCode":0}`}},
		"failed": {
			dag.Ended{State: v1.TaskFailed, Reason: v1.ReasonMaxCost, ExitCode: -1}, dag.Record{State: v1.TaskFailed, Reason: v1.ReasonMaxCost},
			[]string{`failed {"reason":"max_cost"}`},
		},
		"moved": {
			dag.Ended{State: v1.AttemptMoved, Reason: v1.ReasonDraining, ExitCode: -1}, dag.Record{State: v1.TaskQueued, Claim: 2},
			[]string{`reassigned {"reason":"draining"}`, `queued {}`},
		},
		"cancelled": {dag.Ended{State: v1.TaskCancelled, ExitCode: -1}, dag.Record{State: v1.TaskCancelled}, []string{`cancelled {}`}},
	} {
		b := newTestStatus(t, 1)
		become(b, 0, dag.Record{State: v1.TaskAssigned, Node: "a", Claim: 1, Attempt: 4}, now)
		test.ended.Claim = 1
		b.EndAttempt(0, flight.End{Attempt: 4, Place: flight.Place{Node: "a"}, Ended: test.ended, Response: agentAnswer(1)}, now)
		become(b, 0, test.rec, now)
		become(b, 0, test.rec, now)
		got := dataOf(t, b.log)
		if name == "moved" {
			got = slices.DeleteFunc(got, func(e string) bool { return e == "queued {}" })
			test.want = test.want[:1]
		}
		if want := append([]string{`assigned {}`, "started {}", turn, call}, test.want...); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s, want\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, e := range b.log.Unstored("", 0).GetEvents() {
			if e.GetEvent() != v1.EventTurn && e.GetEvent() != v1.EventToolCall {
				continue
			}
			told := fmt.Sprintf("%s %d %d %d %s", e.GetNode(), e.GetAttempt(), e.GetClaim(), e.GetAt().AsTime().UnixMilli(), e.GetDetail())
			want := map[string]string{
				v1.EventTurn:     "a 4 1 2500 turn 1 took 0.5 s, 1,200 tokens in, 30 out, $0.25",
				v1.EventToolCall: "a 4 1 3500 shell in turn 1 took 1.5 s: exit code 1",
			}[e.GetEvent()]
			if told != want {
				t.Errorf("%s: got %q, want %q", name, told, want)
			}
		}
	}
}

// For an attempt with very many turns only the newest are logged, but the usage of the task counts all of them.
func TestAgentEventsOfAnAttemptAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(9999, 0)
	b := newTestStatus(t, 1)
	end := flight.End{Place: flight.Place{Node: "a"}, Ended: dag.Ended{Claim: 1, State: v1.TaskCompleted}, Response: agentAnswer(400)}
	b.records.Ended(end)
	b.EndAttempt(0, end, now)
	become(b, 0, dag.Record{State: v1.TaskCompleted}, now)
	events := b.log.Unstored("", 0).GetEvents()
	first := events[1].GetData().GetFields()["turn"].GetNumberValue()
	if n := len(events); n != maxAgentEvents+2 || first != 400-maxAgentEvents/2+1 {
		t.Errorf("%d events, from turn %v on", n, first)
	}
	if result := b.taskMessage(0).GetResult(); result.GetAgent().GetTurns() != 400 {
		t.Errorf("the result is %v", result)
	}
}

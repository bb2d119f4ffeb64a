package scriptedmodel

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ignoreIDs compares tool calls without their IDs, and answers without their chunks.
var ignoreIDs = cmp.Options{cmpopts.IgnoreFields(ToolCall{}, "ID"), cmpopts.IgnoreFields(answer{}, "Chunks")}

func TestRepliesReachEveryClient(t *testing.T) {
	t.Parallel()
	long := "All work and no play makes Jack a dull boy – daß es so ist, weiß jeder 🙂."
	weather := ToolCall{Name: "forecast", Arguments: `{"city":"Oslo","days":[1,2]}`}
	usage := Usage{Input: 100, Output: 20, CacheRead: 30}
	for _, test := range []struct {
		name  string
		reply Reply
		want  answer
	}{
		{"text", Reply{Text: "Hello there."}, answer{Text: "Hello there.", Usage: Usage{Input: 3, Output: 2}, StopReason: StopEndTurn}},
		{"long text", Reply{Text: long, Usage: &usage}, answer{Text: long, Usage: usage, StopReason: StopEndTurn}},
		{"nothing", Reply{}, answer{Usage: Usage{Input: 3}, StopReason: StopEndTurn}},
		{"tool call", Reply{ToolCalls: []ToolCall{weather}, Usage: &usage}, answer{ToolCalls: []ToolCall{weather}, Usage: usage, StopReason: StopToolUse}},
		{"text and tool calls", Reply{Text: "Let me see.", ToolCalls: []ToolCall{weather, {Name: "now"}}, Usage: &usage},
			answer{Text: "Let me see.", ToolCalls: []ToolCall{weather, {Name: "now", Arguments: "{}"}}, Usage: usage, StopReason: StopToolUse}},
		{"cut by max tokens", Reply{Text: "Once upon", StopReason: StopMaxTokens, Usage: &usage}, answer{Text: "Once upon", Usage: usage, StopReason: StopMaxTokens}},
		{"refusal", Reply{Text: "I will not.", StopReason: StopRefusal, Usage: &usage}, answer{Text: "I will not.", Usage: usage, StopReason: StopRefusal}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachClient(t, func(t *testing.T, c client) {
				model, server := start(t, Script{Rules: []Rule{{Reply: test.reply}}})
				got, err := c.ask(bounded(t), caller{url: server.URL, http: server.Client(), key: testKey}, says("Tell me something."))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got, ignoreIDs); diff != "" {
					t.Error(diff)
				}
				if model.Delivered() != 1 {
					t.Errorf("%d replies were delivered", model.Delivered())
				}
			})
		})
	}
}

func TestBrokenArgumentsReachTheClientAsTheyAre(t *testing.T) {
	t.Parallel()
	const broken = `{"city": "Oslo", "days": [1,`
	script := Script{Rules: []Rule{{Reply: Reply{ToolCalls: []ToolCall{{Name: "forecast", Arguments: broken}}}}}}
	eachClient(t, func(t *testing.T, c client) {
		_, server := start(t, script)
		got, err := c.ask(bounded(t), caller{url: server.URL, http: server.Client(), key: testKey}, says("weather"))
		if err != nil {
			t.Fatal(err)
		}
		want := Arguments(broken)
		if c.api == APIMessages && !c.isStream {
			want = Arguments(encode(broken))
		}
		if len(got.ToolCalls) != 1 || got.ToolCalls[0].Arguments != want {
			t.Errorf("got %q, want arguments %q", got.ToolCalls, want)
		}
	})
}

func TestToolCallMakesRoundTrip(t *testing.T) {
	t.Parallel()
	script := Script{Rules: []Rule{
		{When: When{ToolResult: "forecast"}, Reply: Reply{Text: "It rains."}},
		{When: When{System: "meteorologist", User: "weather", Turns: new(0)}, Reply: Reply{
			ToolCalls: []ToolCall{{Name: "forecast", Arguments: `{"city":"Oslo"}`}, {Name: "now"}},
		}},
	}}
	eachClient(t, func(t *testing.T, c client) {
		model, server := start(t, script)
		ask := caller{url: server.URL, http: server.Client(), key: testKey}
		conversation := says("How is the weather?")
		conversation.System = "You are a meteorologist."
		conversation.Tools = []Tool{{"forecast", "Forecasts.", json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}}
		first, err := c.ask(bounded(t), ask, conversation)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.ToolCalls) != 2 || first.ToolCalls[0].ID == first.ToolCalls[1].ID {
			t.Fatalf("tool calls: %+v", first.ToolCalls)
		}
		conversation.Messages = append(conversation.Messages, Message{Role: RoleAssistant, ToolCalls: first.ToolCalls}, Message{Role: RoleTool, ToolResults: []ToolResult{
			{ID: first.ToolCalls[0].ID, Text: "rain", IsError: c.api == APIMessages}, {ID: first.ToolCalls[1].ID, Text: "noon"},
		}})
		second, err := c.ask(bounded(t), ask, conversation)
		if err != nil {
			t.Fatal(err)
		}
		if second.Text != "It rains." {
			t.Errorf("second reply: %+v", second)
		}

		requests := model.Requests()
		if len(requests) != 2 || model.Delivered() != 2 || model.Repeated() != 0 {
			t.Fatalf("%d requests, %d delivered, %d again", len(requests), model.Delivered(), model.Repeated())
		}
		got := requests[1].Conversation
		want := []ToolResult{
			{first.ToolCalls[0].ID, "forecast", "rain", c.api == APIMessages}, {first.ToolCalls[1].ID, "now", "noon", false},
		}
		if diff := cmp.Diff(want, got.NewToolResults()); diff != "" {
			t.Error(diff)
		}
		if got.System != conversation.System || got.Turns() != 1 || len(got.Tools) != 1 || got.Tools[0].Description != "Forecasts." {
			t.Errorf("recorded %+v", got)
		}
		if requests[0].Rule != "rules[1]" || requests[1].Rule != "rules[0]" {
			t.Errorf("rules %q and %q", requests[0].Rule, requests[1].Rule)
		}
	})
}

func TestSameRequestGetsSameReply(t *testing.T) {
	t.Parallel()
	script := Script{Rules: []Rule{{Reply: Reply{Text: "Calling.", ToolCalls: []ToolCall{{Name: "now"}}}}}}
	eachClient(t, func(t *testing.T, c client) {
		model, server := start(t, script)
		ask := caller{url: server.URL, http: server.Client(), key: testKey}
		var answers []answer
		for range 3 {
			got, err := c.ask(bounded(t), ask, says("time"))
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, got)
		}
		if diff := cmp.Diff(answers[0], answers[2]); diff != "" {
			t.Error(diff)
		}
		if model.Delivered() != 3 || model.Repeated() != 2 {
			t.Errorf("%d delivered, %d again", model.Delivered(), model.Repeated())
		}
	})
}

func TestChunkSizeSplitsStreams(t *testing.T) {
	t.Parallel()
	script := Script{Rules: []Rule{{Pace: Pace{ChunkSize: 2}, Reply: Reply{Text: "äöü", ToolCalls: []ToolCall{{Name: "now", Arguments: `{"a":1}`}}}}}}
	eachClient(t, func(t *testing.T, c client) {
		_, server := start(t, script)
		got, err := c.ask(bounded(t), caller{url: server.URL, http: server.Client(), key: testKey}, says("time"))
		if err != nil {
			t.Fatal(err)
		}
		if want := 6; c.isStream && got.Chunks != want {
			t.Errorf("%d chunks, want %d", got.Chunks, want)
		}
		if got.Text != "äöü" {
			t.Errorf("text %q", got.Text)
		}
	})
}

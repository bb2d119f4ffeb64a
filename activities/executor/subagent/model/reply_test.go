package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchyard/dev/scriptedmodel"
)

func TestTextArrivesInPiecesAndWhole(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		usage := &scriptedmodel.Usage{Input: 40, Output: 5, CacheRead: 30}
		_, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "It rains in Oslo, as it does.", Usage: usage}})
		var pieces []string
		reply, err := ask(t, provider, server, nil).Reply(bounded(t), says("weather?"), func(s string) { pieces = append(pieces, s) })
		if err != nil {
			t.Fatal(err)
		}
		want := &Reply{
			Message: Message{Role: Assistant, Parts: []Part{{Text: "It rains in Oslo, as it does."}}},
			Usage:   Usage{InputTokens: 40, OutputTokens: 5, CacheReadTokens: 30}, Stop: StopEnd, Model: "test-model",
		}
		if diff := cmp.Diff(want, reply); diff != "" {
			t.Error(diff)
		}
		if len(pieces) < 2 || strings.Join(pieces, "") != "It rains in Oslo, as it does." {
			t.Errorf("pieces %q", pieces)
		}
	})
}

func TestToolsAreCalledAndAnswered(t *testing.T) {
	t.Parallel()
	one := 1
	eachProvider(t, func(t *testing.T, provider string) {
		model, server := serve(t,
			scriptedmodel.Rule{When: scriptedmodel.When{Turns: &one, ToolResult: "forecast"}, Reply: scriptedmodel.Reply{Text: "Rain."}},
			scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "Let me see.", ToolCalls: []scriptedmodel.ToolCall{
				{Name: "forecast", Arguments: `{"city": "Oslo", "days": 12345678901234567890}`}, {Name: "forecast", Arguments: `{"city":"<Bergen>"}`}, {Name: "now"},
			}}},
		)
		c := ask(t, provider, server, nil)
		r := says("weather?")
		r.System = "You are brief."
		r.Tools = []Tool{
			{Name: "forecast", Description: "tells the weather", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"$ref":"#/$defs/c"}},"$defs":{"c":{"type":"string","maxLength":12345678901234567890}}}`)},
			{Name: "now"},
		}
		reply, err := c.Reply(bounded(t), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		parts := reply.Message.Parts
		if reply.Stop != StopTools || len(parts) != 4 || parts[0].Text != "Let me see." {
			t.Fatalf("reply %+v", reply)
		}
		for i, want := range []string{`{"city":"Oslo","days":12345678901234567890}`, `{"city":"<Bergen>"}`, `{}`} {
			if call := parts[i+1].Call; string(call.Arguments) != want || call.Broken != "" || call.ID == "" {
				t.Errorf("call %+v, want arguments %s", call, want)
			}
		}

		r.Messages = roundTrip(t, append(r.Messages, reply.Message, Message{Role: User, Parts: []Part{
			{Text: "Hurry."},
			{Result: &CallResult{ID: parts[1].Call.ID, Text: "rain"}},
			{Result: &CallResult{ID: parts[2].Call.ID, Text: "no such city", IsError: true}},
			{Result: &CallResult{ID: parts[3].Call.ID}},
		}}))
		reply, err = c.Reply(bounded(t), r, nil)
		if err != nil || reply.Stop != StopEnd || reply.Message.Parts[0].Text != "Rain." {
			t.Fatalf("reply %+v, error %v", reply, err)
		}
		got := model.Requests()[1].Conversation
		if got.System != "You are brief." || len(got.Tools) != 2 || got.Tools[0].Description != "tells the weather" {
			t.Errorf("conversation %+v", got)
		}
		if schema := string(got.Tools[0].Schema); !strings.Contains(schema, `"maxLength":12345678901234567890`) {
			t.Errorf("schema %s", schema)
		}
		if schema := string(got.Tools[1].Schema); !strings.Contains(schema, `"type":"object"`) {
			t.Errorf("schema %s", schema)
		}
		var results []string
		for _, m := range got.Messages[2:] {
			for _, result := range m.ToolResults {
				results = append(results, result.Text)
			}
		}
		want := []string{"rain", "no such city", ""}
		if provider == providerOpenAI {
			want[1] = "Error: no such city"
		}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Error(diff)
		}
		if calls := got.Messages[1].ToolCalls; len(calls) != 3 || !strings.Contains(string(calls[0].Arguments), "12345678901234567890") {
			t.Errorf("calls %+v", calls)
		}
	})
}

// roundTrip returns messages after a round trip through a journal.
func roundTrip(t *testing.T, messages []Message) []Message {
	t.Helper()
	text, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	var back []Message
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || string(again) != string(text) {
		t.Errorf("a round trip changes %s to %s", text, again)
	}
	return back
}

func TestBrokenArgumentsAreKeptAndSentAsEmptyObject(t *testing.T) {
	t.Parallel()
	one := 1
	eachProvider(t, func(t *testing.T, provider string) {
		long := `{"text":"` + strings.Repeat("ä", maxBroken) // the bound is within a character
		model, server := serve(t,
			scriptedmodel.Rule{When: scriptedmodel.When{Turns: &one}, Reply: scriptedmodel.Reply{Text: "Sorry."}},
			scriptedmodel.Rule{Reply: scriptedmodel.Reply{ToolCalls: []scriptedmodel.ToolCall{
				{Name: "a", Arguments: `{"city": "Os`}, {Name: "b c", Arguments: `["Oslo"]`}, {Name: "d", Arguments: scriptedmodel.Arguments(long)},
				{Name: "e", Arguments: "null"},
			}}})
		c, r := ask(t, provider, server, nil), says("go")
		reply, err := c.Reply(bounded(t), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		answers := Message{Role: User}
		for i, want := range []string{`{"city": "Os`, `["Oslo"]`, long[:maxBroken-1], ""} {
			call := reply.Message.Parts[i].Call
			if call.Broken != want || string(call.Arguments) != "{}" {
				t.Errorf("call %+v, want broken %q", call, want)
			}
			answers.Parts = append(answers.Parts, Part{Result: &CallResult{ID: call.ID, Text: "write JSON", IsError: true}})
		}
		r.Messages = roundTrip(t, append(r.Messages, reply.Message, answers))
		if _, err := c.Reply(bounded(t), r, nil); err != nil {
			t.Fatal(err)
		}
		calls := model.Requests()[1].Conversation.Messages[1].ToolCalls
		if calls[0].Arguments != "{}" || calls[1].Name != "b_c" {
			t.Errorf("calls %+v", calls)
		}
	})
}

func TestStopReasonsAreTranslated(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		call := []scriptedmodel.ToolCall{{Name: "a", Arguments: `{"half": `}}
		for _, test := range []struct {
			reply scriptedmodel.Reply
			want  Stop
		}{
			{scriptedmodel.Reply{Text: "x", StopReason: scriptedmodel.StopEndTurn}, StopEnd},
			{scriptedmodel.Reply{Text: "x", StopReason: scriptedmodel.StopMaxTokens}, StopLength},
			{scriptedmodel.Reply{ToolCalls: call, StopReason: scriptedmodel.StopMaxTokens}, StopLength},
			{scriptedmodel.Reply{Text: "x", StopReason: scriptedmodel.StopRefusal}, StopRefusal},
			{scriptedmodel.Reply{Text: "x", StopReason: "a new one"}, StopEnd},
			{scriptedmodel.Reply{ToolCalls: call, StopReason: "a new one"}, StopTools},
			{scriptedmodel.Reply{Text: "x", StopReason: scriptedmodel.StopToolUse}, StopEnd},
			{scriptedmodel.Reply{}, StopEnd},
		} {
			_, server := serve(t, scriptedmodel.Rule{Reply: test.reply})
			reply, err := ask(t, provider, server, nil).Reply(bounded(t), says("go"), nil)
			if err != nil || reply.Stop != test.want {
				t.Errorf("%+v: reply %+v, error %v, want stop %s", test.reply, reply, err, test.want)
			}
		}
	})
}

func TestEmptyRepliesAreLeftOutOfConversations(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		model, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "ok"}})
		r := says("go")
		r.Messages = append(r.Messages, Message{Role: Assistant, Parts: []Part{}}, Message{Role: User, Parts: []Part{{Text: "Well?"}}})
		if _, err := ask(t, provider, server, nil).Reply(bounded(t), r, nil); err != nil {
			t.Fatal(err)
		}
		if got := model.Requests()[0].Conversation.Messages; len(got) != 2 || got[1].Text != "Well?" {
			t.Errorf("messages %+v", got)
		}
	})
}

func TestMissingUsageIsEstimated(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		_, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: strings.Repeat("word", 100), Usage: &scriptedmodel.Usage{}}})
		reply, err := ask(t, provider, server, nil).Reply(bounded(t), says(strings.Repeat("word", 50)), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := Usage{InputTokens: 50, OutputTokens: 100 + bytesPerBlock/bytesPerToken}
		if reply.Usage != want {
			t.Errorf("usage %+v, want %+v", reply.Usage, want)
		}
	})
}

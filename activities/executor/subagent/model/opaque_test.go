package model

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"switchyard/dev/scriptedmodel"
)

// thinkingStream is a reply of the Messages API with signed thinking, redacted thinking and a tool call, as sent on the
// wire.
const thinkingStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"test-model","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":"","number":12345678901234567890}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Is 1 < 2 && \"3\" > 2?\n"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Já – 🙂\u2028 \\ \u0007"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM+/9x=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"<b64&+/=>"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Let me see."}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"now","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":30}}

event: message_stop
data: {"type":"message_stop"}

`

// wireBlock is a block in a request of the Messages API.
type wireBlock struct {
	Type         string          `json:"type"`
	CacheControl json.RawMessage `json:"cache_control"`
}

// rawConversation returns the blocks of a request's messages as sent on the wire.
func rawConversation(t *testing.T, body []byte) [][]json.RawMessage {
	t.Helper()
	var wire struct {
		Messages []struct {
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		t.Fatal(err)
	}
	var blocks [][]json.RawMessage
	for _, m := range wire.Messages {
		blocks = append(blocks, m.Content)
	}
	return blocks
}

func TestOpaqueBlocksReturnByteForByte(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies [][]byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		bodies = append(bodies, body)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, thinkingStream)
	}))
	defer server.Close()
	c, r := ask(t, providerAnthropic, server, nil), says("go")
	reply, err := c.Reply(bounded(t), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts := reply.Message.Parts
	if len(parts) != 4 || parts[2].Text != "Let me see." || parts[3].Call == nil || reply.Stop != StopTools {
		t.Fatalf("reply %+v", reply)
	}
	var thinking struct {
		Type, Thinking, Signature string
		Number                    json.Number
	}
	if err := json.Unmarshal(parts[0].Opaque, &thinking); err != nil {
		t.Fatal(err)
	}
	if thinking.Type != "thinking" || thinking.Thinking != "Is 1 < 2 && \"3\" > 2?\nJá – 🙂\u2028 \\ \a" ||
		thinking.Signature != "EqQBCgIYAhIM+/9x==" || thinking.Number != "12345678901234567890" {
		t.Errorf("thinking %+v", thinking)
	}

	r.Messages = roundTrip(t, append(r.Messages, reply.Message, Message{Role: User, Parts: []Part{{Result: &CallResult{ID: "toolu_1", Text: "noon"}}}}))
	again, err := c.Reply(bounded(t), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Messages = roundTrip(t, append(r.Messages, again.Message, Message{Role: User, Parts: []Part{{Result: &CallResult{ID: again.Message.Parts[3].Call.ID}}}}))
	if _, err := c.Reply(bounded(t), r, nil); err != nil {
		t.Fatal(err)
	}
	for n, body := range bodies[1:] {
		sent := rawConversation(t, body)[1]
		if len(sent) != 4 {
			t.Fatalf("request %d: blocks %s", n+1, sent)
		}
		for i := range 2 {
			if string(sent[i]) != string(parts[i].Opaque) {
				t.Errorf("request %d: block %d was sent as\n%s\nand came as\n%s", n+1, i, sent[i], parts[i].Opaque)
			}
		}
	}
}

func TestOpaqueBlocksStayWithTheirProvider(t *testing.T) {
	t.Parallel()
	opaque := Part{Opaque: json.RawMessage(`{"type":"thinking","thinking":"secret","signature":"x"}`)}
	model, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "ok"}})
	r := says("go")
	r.Messages = append(r.Messages, Message{Role: Assistant, Parts: []Part{opaque}}, Message{Role: Assistant, Parts: []Part{opaque, {Text: "Hm."}}},
		Message{Role: User, Parts: []Part{{Text: "Well?"}}})
	if _, err := ask(t, providerOpenAI, server, nil).Reply(bounded(t), r, nil); err != nil {
		t.Fatal(err)
	}
	got := model.Requests()[0]
	if strings.Contains(string(got.Body), "secret") || len(got.Conversation.Messages) != 3 {
		t.Errorf("body %s", got.Body)
	}
}

func TestAnthropicCachesThePromptAndTheConversation(t *testing.T) {
	t.Parallel()
	model, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "ok"}})
	r := Request{Model: "test-model", System: "You are brief.", Tools: []Tool{{Name: "now"}}, Messages: []Message{
		{Role: User, Parts: []Part{{Text: "time?"}}},
		{Role: Assistant, Parts: []Part{{Call: &Call{ID: "c1", Name: "now"}}, {Call: &Call{ID: "c2", Name: "now"}}}},
		{Role: User, Parts: []Part{{Result: &CallResult{ID: "c1", Text: "noon"}}, {Result: &CallResult{ID: "c2"}}}},
	}}
	ends := [][]Part{nil, {{Text: "Hurry."}}}
	for _, more := range ends {
		r.Messages[2].Parts = append(r.Messages[2].Parts, more...)
		if _, err := ask(t, providerAnthropic, server, nil).Reply(bounded(t), r, nil); err != nil {
			t.Fatal(err)
		}
	}
	const ephemeral = `{"type":"ephemeral"}`
	for n, request := range model.Requests() {
		var wire struct {
			System []wireBlock `json:"system"`
		}
		if err := json.Unmarshal(request.Body, &wire); err != nil {
			t.Fatal(err)
		}
		if len(wire.System) != 1 || string(wire.System[0].CacheControl) != ephemeral {
			t.Errorf("request %d: system %s", n, wire.System)
		}
		messages := rawConversation(t, request.Body)
		for i, blocks := range messages {
			for j, raw := range blocks {
				var block wireBlock
				if err := json.Unmarshal(raw, &block); err != nil {
					t.Fatal(err)
				}
				want := ""
				if i == len(messages)-1 && j == len(blocks)-1 {
					want = ephemeral
				}
				if string(block.CacheControl) != want {
					t.Errorf("request %d: message %d, block %d: %s", n, i, j, raw)
				}
			}
		}
	}
}

package scriptedmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// anthropic is the Messages API, as in https://docs.anthropic.com/en/api/messages and .../messages-streaming.
type anthropic struct{}

func (anthropic) name() string { return APIMessages }

func (anthropic) requestIDHeader() string { return "request-id" }

func (anthropic) overloaded() int { return 529 }

func (anthropic) key(header http.Header) string {
	if key := header.Get("X-Api-Key"); key != "" {
		return key
	}
	return bearer(header)
}

// bearer returns the token of the header Authorization, or "".
func bearer(header http.Header) string {
	token, found := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	if !found {
		return ""
	}
	return token
}

func (anthropic) read(body []byte) (wireRequest, error) {
	var wire struct {
		Model     string  `json:"model"`
		MaxTokens *int    `json:"max_tokens"`
		Stream    bool    `json:"stream"`
		System    content `json:"system"`
		Messages  []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return wireRequest{}, fmt.Errorf("the request body is not valid JSON: %w", err)
	}
	c := Conversation{Model: wire.Model, System: wire.System.text()}
	for _, tool := range wire.Tools {
		c.Tools = append(c.Tools, Tool{tool.Name, tool.Description, tool.InputSchema})
	}
	r := wireRequest{isStream: wire.Stream}
	var problem error
	for i, m := range wire.Messages {
		message := Message{Role: m.Role, Text: m.Content.text()}
		for _, p := range m.Content {
			switch p.Type {
			case "tool_use":
				message.ToolCalls = append(message.ToolCalls, ToolCall{p.ID, p.Name, Arguments(p.Input)})
				if json.Unmarshal(p.Input, new(object)) != nil {
					problem = fmt.Errorf("messages.%d: tool_use.input: Input should be an object", i)
				}
			case "thinking":
				message.Thinking = joinLines(message.Thinking, p.Thinking)
				if p.Signature != signature(p.Thinking) {
					problem = fmt.Errorf("messages.%d: thinking.signature: Invalid signature in thinking block", i)
				}
			case "tool_result":
				message.ToolResults = append(message.ToolResults, ToolResult{ID: p.ToolUseID, Text: p.Content.text(), IsError: p.IsError})
			}
		}
		if m.Role != RoleUser && m.Role != RoleAssistant {
			problem = fmt.Errorf("messages.%d: role: must be user or assistant", i)
		}
		c.Messages = append(c.Messages, message)
	}
	r.conversation = c
	switch {
	case problem != nil:
		return r, problem
	case wire.Model == "":
		return r, errors.New("model: Field required")
	case wire.MaxTokens == nil || *wire.MaxTokens < 1:
		return r, errors.New("max_tokens: must be greater than or equal to 1")
	}
	return r, c.resolveTools()
}

func (anthropic) stream(t turn) []event {
	var events []event
	add := func(isChunk bool, name string, fields object) {
		fields["type"] = name
		events = append(events, event{name: name, data: encode(fields), isChunk: isChunk})
	}
	index := 0
	block := func(start object, deltaType, field string, pieces []string, last ...object) {
		add(false, "content_block_start", object{"index": index, "content_block": start})
		if index == 0 {
			add(false, "ping", object{})
		}
		if deltaType == "input_json_delta" { // the provider starts arguments with an empty piece
			add(false, "content_block_delta", object{"index": index, "delta": object{"type": deltaType, field: ""}})
		}
		for _, piece := range pieces {
			add(true, "content_block_delta", object{"index": index, "delta": object{"type": deltaType, field: piece}})
		}
		for _, delta := range last {
			add(false, "content_block_delta", object{"index": index, "delta": delta})
		}
		add(false, "content_block_stop", object{"index": index})
		index++
	}

	first := anthropicUsage(t.usage)
	first["output_tokens"] = min(1, t.usage.Output)
	add(false, "message_start", object{"message": anthropicMessage(t, []object{}, nil, first)})
	if t.thinking != "" {
		start := object{"type": "thinking", "thinking": "", "signature": ""}
		block(start, "thinking_delta", "thinking", chunks(t.thinking, t.chunkSize), object{"type": "signature_delta", "signature": signature(t.thinking)})
	}
	if t.text != "" {
		block(object{"type": "text", "text": ""}, "text_delta", "text", chunks(t.text, t.chunkSize))
	}
	for _, call := range t.calls {
		start := object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object{}}
		block(start, "input_json_delta", "partial_json", chunks(string(call.Arguments), t.chunkSize))
	}
	add(false, "message_delta", object{
		"delta": object{"stop_reason": t.stopReason, "stop_sequence": nil},
		"usage": anthropicUsage(t.usage),
	})
	add(false, "message_stop", object{})
	return events
}

func (anthropic) message(t turn) []byte {
	blocks := []object{}
	if t.thinking != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": t.thinking, "signature": signature(t.thinking)})
	}
	if t.text != "" {
		blocks = append(blocks, object{"type": "text", "text": t.text})
	}
	for _, call := range t.calls {
		var input any = json.RawMessage(call.Arguments)
		if !json.Valid([]byte(call.Arguments)) {
			input = string(call.Arguments)
		}
		blocks = append(blocks, object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": input})
	}
	return encode(anthropicMessage(t, blocks, t.stopReason, anthropicUsage(t.usage)))
}

// anthropicMessage returns a message of the Messages API; the stop reason is nil at the start of a stream.
func anthropicMessage(t turn, blocks []object, stopReason any, usage object) object {
	return object{
		"id": "msg_" + t.id, "type": "message", "role": RoleAssistant, "model": t.model,
		"content": blocks, "stop_reason": stopReason, "stop_sequence": nil, "usage": usage,
	}
}

// anthropicUsage returns a usage of the Messages API.
func anthropicUsage(u Usage) object {
	return object{
		"input_tokens": u.Input, "output_tokens": u.Output,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
}

// anthropicErrors maps HTTP statuses to error types.
var anthropicErrors = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}

func (anthropic) failure(status int, message string) []byte {
	kind := anthropicErrors[status]
	switch {
	case kind == "" && status < 500:
		kind = "invalid_request_error"
	case kind == "":
		kind = "api_error"
	}
	return encode(object{"type": "error", "error": object{"type": kind, "message": message}})
}

func (a anthropic) failureEvent() event {
	return event{name: "error", data: a.failure(a.overloaded(), "Overloaded")}
}

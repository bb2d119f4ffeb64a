package scriptedmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// openAI is the Chat Completions API, as in https://platform.openai.com/docs/api-reference/chat and .../chat-streaming.
type openAI struct{}

// openAICreated is the creation time of every completion in Unix seconds. It is constant so that equal requests get
// equal replies.
const openAICreated = 1_767_225_600

func (openAI) name() string { return APIChatCompletions }

func (openAI) requestIDHeader() string { return "x-request-id" }

func (openAI) overloaded() int { return http.StatusServiceUnavailable }

func (openAI) key(header http.Header) string { return bearer(header) }

// openAICall is a tool call on the wire.
type openAICall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments Arguments `json:"arguments"`
	} `json:"function"`
}

func (openAI) read(body []byte) (wireRequest, error) {
	var wire struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role       string       `json:"role"`
			Content    content      `json:"content"`
			ToolCalls  []openAICall `json:"tool_calls"`
			ToolCallID string       `json:"tool_call_id"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return wireRequest{}, fmt.Errorf("the request body is not valid JSON: %w", err)
	}
	c := Conversation{Model: wire.Model}
	for _, tool := range wire.Tools {
		c.Tools = append(c.Tools, Tool{tool.Function.Name, tool.Function.Description, tool.Function.Parameters})
	}
	r := wireRequest{isStream: wire.Stream, withUsage: wire.StreamOptions.IncludeUsage}
	var problem error
	for i, m := range wire.Messages {
		message := Message{Role: m.Role, Text: m.Content.text()}
		switch m.Role {
		case "system", "developer":
			c.System = joinLines(c.System, message.Text)
			continue
		case RoleTool:
			message = Message{Role: RoleTool, ToolResults: []ToolResult{{ID: m.ToolCallID, Text: message.Text}}}
		case RoleUser, RoleAssistant:
		default:
			problem = fmt.Errorf("messages.%d: role: must be system, developer, user, assistant or tool", i)
		}
		for _, call := range m.ToolCalls {
			message.ToolCalls = append(message.ToolCalls, ToolCall{call.ID, call.Function.Name, call.Function.Arguments})
		}
		c.Messages = append(c.Messages, message)
	}
	r.conversation = c
	switch {
	case problem != nil:
		return r, problem
	case wire.Model == "":
		return r, errors.New("you must provide a model parameter")
	}
	return r, c.resolveTools()
}

func (openAI) stream(t turn) []event {
	var events []event
	add := func(isChunk bool, choices []object, usage any) {
		fields := object{
			"id": "chatcmpl-" + t.id, "object": "chat.completion.chunk", "created": openAICreated, "model": t.model, "choices": choices,
		}
		if t.withUsage {
			fields["usage"] = usage
		}
		events = append(events, event{data: encode(fields), isChunk: isChunk})
	}
	delta := func(isChunk bool, delta object, finishReason any) {
		add(isChunk, []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finishReason}}, nil)
	}

	delta(false, object{"role": RoleAssistant, "content": ""}, nil)
	for _, piece := range chunks(t.text, t.chunkSize) {
		delta(true, object{"content": piece}, nil)
	}
	for i, call := range t.calls {
		function := object{"name": call.Name, "arguments": ""}
		delta(false, object{"tool_calls": []object{{"index": i, "id": call.ID, "type": "function", "function": function}}}, nil)
		for _, piece := range chunks(string(call.Arguments), t.chunkSize) {
			delta(true, object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}
	delta(false, object{}, openAIFinishReason(t.stopReason))
	if t.withUsage {
		add(false, []object{}, openAIUsage(t.usage))
	}
	return append(events, event{data: []byte("[DONE]")})
}

func (openAI) message(t turn) []byte {
	message := object{"role": RoleAssistant, "content": nil, "refusal": nil}
	if t.text != "" || len(t.calls) == 0 {
		message["content"] = t.text
	}
	var calls []object
	for _, call := range t.calls {
		function := object{"name": call.Name, "arguments": call.Arguments}
		calls = append(calls, object{"id": call.ID, "type": "function", "function": function})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	choice := object{"index": 0, "message": message, "logprobs": nil, "finish_reason": openAIFinishReason(t.stopReason)}
	return encode(object{
		"id": "chatcmpl-" + t.id, "object": "chat.completion", "created": openAICreated, "model": t.model,
		"choices": []object{choice}, "usage": openAIUsage(t.usage),
	})
}

// openAIFinishReason returns the finish reason for a stop reason.
func openAIFinishReason(stopReason string) string {
	switch stopReason {
	case StopEndTurn:
		return "stop"
	case StopToolUse:
		return "tool_calls"
	case StopMaxTokens:
		return "length"
	case StopRefusal:
		return "content_filter"
	}
	return stopReason
}

// openAIUsage returns a usage of Chat Completions.
func openAIUsage(u Usage) object {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"prompt_tokens": prompt, "completion_tokens": u.Output, "total_tokens": prompt + u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead},
	}
}

// openAIErrors maps HTTP statuses to error types and codes.
var openAIErrors = map[int]struct {
	kind string
	code any
}{
	401: {"invalid_request_error", "invalid_api_key"},
	429: {"requests", "rate_limit_exceeded"},
}

func (openAI) failure(status int, message string) []byte {
	e := openAIErrors[status]
	switch {
	case e.kind == "" && status < 500:
		e.kind = "invalid_request_error"
	case e.kind == "":
		e.kind = "server_error"
	}
	return encode(object{"error": object{"message": message, "type": e.kind, "param": nil, "code": e.code}})
}

func (o openAI) failureEvent() event {
	return event{data: o.failure(o.overloaded(), "The server is currently overloaded.")}
}

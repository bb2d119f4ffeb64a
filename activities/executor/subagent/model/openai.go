package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// openaiDialect speaks the Chat Completions API.
type openaiDialect struct{ completions openai.ChatCompletionService }

// newOpenAI returns the dialect. It creates only the service, because openai.NewClient reads keys and addresses from
// the environment.
func newOpenAI(e endpoint) openaiDialect {
	options := []option.RequestOption{option.WithBaseURL(e.url), option.WithMaxRetries(0)}
	if e.key != "" {
		options = append(options, option.WithAPIKey(e.key))
	}
	return openaiDialect{openai.NewChatCompletionService(options...)}
}

func (d openaiDialect) stream(ctx context.Context, client *http.Client, r Request, reply *assembly) error {
	params, err := openaiRequest(r)
	if err != nil {
		return err
	}
	stream := d.completions.NewStreaming(ctx, params, option.WithHTTPClient(client))
	defer stream.Close()
	var deltas openaiDeltas
	for stream.Next() {
		chunk := stream.Current()
		if err := deltas.add(reply, &chunk); err != nil {
			return err
		}
	}
	var refusal *ssestream.StreamError
	if err := stream.Err(); !errors.As(err, &refusal) {
		return err
	}
	return &statusError{status: openaiStatus(refusal.Event.Data), body: refusal.Event.Data}
}

// openaiDeltas adds the chunks of a stream to a reply.
type openaiDeltas struct {
	text  *block
	calls map[int64]*block // the latest call by index
}

// add adds a chunk to the reply.
func (d *openaiDeltas) add(reply *assembly, chunk *openai.ChatCompletionChunk) error {
	if chunk.Model != "" {
		reply.model = chunk.Model
	}
	if u := chunk.Usage; u.PromptTokens+u.CompletionTokens > 0 { // each is the total so far
		read, write := u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.CacheWriteTokens
		reply.usage = Usage{max(0, u.PromptTokens-read-write), u.CompletionTokens, read, write}
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue // the request asks for one choice
		}
		if err := d.addText(reply, choice.Delta.Content+choice.Delta.Refusal); err != nil {
			return err
		}
		for _, call := range choice.Delta.ToolCalls {
			if err := d.addCall(reply, &call); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			reply.stop = openaiStop(choice.FinishReason)
		}
		if choice.Delta.Refusal != "" {
			reply.isRefusal = true
		}
	}
	return nil
}

// addText appends a piece of text. A reply has one text, which precedes its calls.
func (d *openaiDeltas) addText(reply *assembly, piece string) error {
	if piece == "" {
		return nil
	}
	if d.text == nil {
		d.text = &block{}
		if err := reply.add(d.text); err != nil {
			return err
		}
	}
	return reply.addText(d.text, piece)
}

// addCall appends a piece of a call. Some servers give every call the index 0 and an ID of its own.
func (d *openaiDeltas) addCall(reply *assembly, delta *openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	b := d.calls[delta.Index]
	if b == nil || delta.ID != "" && b.call.ID != "" && b.call.ID != delta.ID {
		b = &block{call: &Call{ID: delta.ID}}
		if d.calls == nil {
			d.calls = map[int64]*block{}
		}
		d.calls[delta.Index] = b
		if err := reply.add(b); err != nil {
			return err
		}
	}
	if b.call.ID == "" {
		b.call.ID = delta.ID
	}
	if b.call.Name == "" {
		b.call.Name = delta.Function.Name
		if err := reply.grow(len(delta.ID) + len(b.call.Name)); err != nil {
			return err
		}
	}
	return reply.addArguments(b, delta.Function.Arguments)
}

// openaiStop translates a finish reason. An unknown reason ends the turn.
func openaiStop(reason string) Stop {
	switch reason {
	case "tool_calls", "function_call":
		return StopTools
	case "length":
		return StopLength
	case "content_filter":
		return StopRefusal
	}
	return StopEnd
}

// openaiStatus returns the HTTP status that corresponds to an error event. Some servers send the status as the code.
func openaiStatus(event []byte) int {
	var numbered struct {
		Error struct {
			Code json.Number `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(event, &numbered) == nil {
		if code, err := numbered.Error.Code.Int64(); err == nil && code >= 400 && code <= 599 {
			return int(code)
		}
	}
	switch a := newAnswer(event); {
	case a.isOneOf("rate_limit_exceeded", "rate_limit_error", "requests", "tokens"):
		return http.StatusTooManyRequests
	case a.isOneOf("server_overloaded", "overloaded_error", "service_unavailable"):
		return http.StatusServiceUnavailable
	case a.isOneOf("invalid_request_error", "context_length_exceeded"):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

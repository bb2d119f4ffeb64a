package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// anthropicDialect speaks the Messages API.
type anthropicDialect struct{ client anthropic.Client }

// newAnthropic returns the dialect. It disables telemetry, which environment variables could otherwise make record
// whole conversations.
func newAnthropic(e endpoint) anthropicDialect {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithBaseURL(e.url), option.WithMaxRetries(0),
	}
	if e.key != "" {
		options = append(options, option.WithAPIKey(e.key))
	}
	return anthropicDialect{anthropic.NewClient(options...)}
}

func (d anthropicDialect) stream(ctx context.Context, client *http.Client, r Request, reply *assembly) error {
	params, err := anthropicRequest(r)
	if err != nil {
		return err
	}
	stream := d.client.Messages.NewStreaming(ctx, params, option.WithHTTPClient(client))
	defer stream.Close()
	for stream.Next() {
		event := stream.Current()
		if event.Type == "message_stop" {
			return nil // the connection may stay open
		}
		if err := addAnthropicEvent(reply, &event); err != nil {
			return err
		}
	}
	var refusal *anthropic.Error
	if err := stream.Err(); !errors.As(err, &refusal) {
		return err
	}
	return &statusError{status: anthropicStatus(string(refusal.Type())), body: []byte(refusal.RawJSON())}
}

// addAnthropicEvent adds a stream event to a reply.
func addAnthropicEvent(reply *assembly, event *anthropic.MessageStreamEventUnion) error {
	switch event.Type {
	case "message_start":
		if event.Message.Model != "" {
			reply.model = event.Message.Model
		}
		u := event.Message.Usage
		reply.usage = Usage{u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens}
	case "content_block_start":
		if event.Index != int64(len(reply.blocks)) {
			return fmt.Errorf("content block %d begins after %d blocks", event.Index, len(reply.blocks))
		}
		return addAnthropicBlock(reply, &event.ContentBlock)
	case "content_block_delta":
		if event.Index < 0 || event.Index >= int64(len(reply.blocks)) {
			return fmt.Errorf("content block %d has not begun", event.Index)
		}
		return addAnthropicDelta(reply, reply.blocks[event.Index], &event.Delta)
	case "message_delta":
		addAnthropicUsage(reply, &event.Usage)
		if reason := event.Delta.StopReason; reason != "" {
			reply.stop = anthropicStop(reason)
		}
	}
	return nil
}

// addAnthropicBlock begins a block of a reply with the content of its first event.
func addAnthropicBlock(reply *assembly, start *anthropic.ContentBlockStartEventContentBlockUnion) error {
	b := &block{}
	switch start.Type {
	case "text":
	case "tool_use":
		b.call = &Call{ID: start.ID, Name: start.Name}
		if err := reply.grow(len(start.ID) + len(start.Name)); err != nil {
			return err
		}
	default:
		if err := json.Unmarshal([]byte(start.RawJSON()), &b.opaque); err != nil {
			return err
		}
		if err := reply.grow(len(start.RawJSON())); err != nil {
			return err
		}
	}
	if err := reply.add(b); err != nil {
		return err
	}
	if start.Type == "text" {
		return reply.addText(b, start.Text)
	}
	return nil
}

// addAnthropicDelta adds a piece to a block of a reply.
func addAnthropicDelta(reply *assembly, b *block, delta *anthropic.MessageStreamEventUnionDelta) error {
	switch {
	case delta.Type == "text_delta" && b.call == nil && b.opaque == nil:
		return reply.addText(b, delta.Text)
	case delta.Type == "input_json_delta" && b.call != nil:
		return reply.addArguments(b, delta.PartialJSON)
	case delta.Type == "thinking_delta" && b.opaque != nil:
		return reply.addOpaque(b, "thinking", delta.Thinking)
	case delta.Type == "signature_delta" && b.opaque != nil:
		return reply.addOpaque(b, "signature", delta.Signature)
	}
	return nil // such as citations, which are no part of the conversation
}

// addAnthropicUsage sets the usage of a reply. Each count is a running total; a missing count keeps its value.
func addAnthropicUsage(reply *assembly, u *anthropic.MessageDeltaUsage) {
	for _, count := range []struct {
		isSet bool
		from  int64
		to    *int64
	}{
		{u.JSON.InputTokens.Valid(), u.InputTokens, &reply.usage.InputTokens},
		{u.JSON.OutputTokens.Valid(), u.OutputTokens, &reply.usage.OutputTokens},
		{u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens, &reply.usage.CacheReadTokens},
		{u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens, &reply.usage.CacheWriteTokens},
	} {
		if count.isSet {
			*count.to = count.from
		}
	}
}

// anthropicStop translates a stop reason. An unknown reason ends the turn.
func anthropicStop(reason anthropic.StopReason) Stop {
	switch reason {
	case anthropic.StopReasonToolUse:
		return StopTools
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return StopLength
	case anthropic.StopReasonRefusal:
		return StopRefusal
	}
	return StopEnd
}

// anthropicStatus returns the HTTP status that corresponds to the type of an error event, as listed in
// https://platform.claude.com/docs/en/api/errors.
func anthropicStatus(kind string) int {
	status, ok := map[string]int{
		"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
		"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
		"overloaded_error": statusOverloaded,
	}[kind]
	if !ok {
		return http.StatusInternalServerError
	}
	return status
}

package model

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// defaultMaxTokens is the maximum reply length of a request that sets none, because the Messages API requires one.
const defaultMaxTokens = 16_384

// anthropicRequest returns a request for the Messages API. The provider caches the tools and the system prompt, and the
// conversation up to the last message.
func anthropicRequest(r Request) (anthropic.MessageNewParams, error) {
	params := anthropic.MessageNewParams{
		Model: r.Model, MaxTokens: int64(cmp.Or(r.MaxTokens, defaultMaxTokens)), Messages: anthropicMessages(r.Messages),
	}
	if strings.TrimSpace(r.System) != "" {
		params.System = []anthropic.TextBlockParam{{Text: r.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	for _, t := range r.Tools {
		schema, err := wireSchema(t)
		if err != nil {
			return params, err
		}
		tool := &anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = anthropic.String(t.Description)
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: tool})
	}
	return params, nil
}

// anthropicMessages returns the messages of a conversation. It omits what the API rejects: messages without parts and
// blank texts.
func anthropicMessages(messages []Message) []anthropic.MessageParam {
	var wire []anthropic.MessageParam
	for _, m := range messages {
		var results, others []anthropic.ContentBlockParamUnion
		for _, p := range m.Parts {
			switch {
			case p.Result != nil:
				results = append(results, anthropicResult(p.Result))
			case p.Call != nil:
				others = append(others, anthropic.NewToolUseBlock(p.Call.ID, wireArguments(p.Call), wireName(p.Call.Name)))
			case isAnthropicBlock(p.Opaque):
				others = append(others, param.Override[anthropic.ContentBlockParamUnion](p.Opaque))
			case strings.TrimSpace(p.Text) != "":
				others = append(others, anthropic.NewTextBlock(p.Text))
			}
		}
		if blocks := append(results, others...); len(blocks) > 0 { // the API wants results first
			wire = append(wire, anthropic.MessageParam{Role: anthropic.MessageParamRole(m.Role), Content: blocks})
		}
	}
	if len(wire) > 0 {
		blocks := wire[len(wire)-1].Content
		if control := blocks[len(blocks)-1].GetCacheControl(); control != nil {
			*control = anthropic.NewCacheControlEphemeralParam()
		}
	}
	return wire
}

// anthropicResult returns the block for a tool result. The API rejects blank texts.
func anthropicResult(result *CallResult) anthropic.ContentBlockParamUnion {
	if strings.TrimSpace(result.Text) != "" {
		return anthropic.NewToolResultBlock(result.ID, result.Text, result.IsError)
	}
	wire := &anthropic.ToolResultBlockParam{ToolUseID: result.ID, IsError: anthropic.Bool(result.IsError)}
	return anthropic.ContentBlockParamUnion{OfToolResult: wire}
}

// isAnthropicBlock reports whether an opaque part comes from this API: all its blocks have a type.
func isAnthropicBlock(opaque json.RawMessage) bool {
	var block struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(opaque, &block) == nil && block.Type != ""
}

package scriptedmodel

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	openaisdk "github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
)

// answer is a client's result, in the same form for both APIs.
type answer struct {
	Text       string
	ToolCalls  []ToolCall
	Usage      Usage
	StopReason string
	Chunks     int // 0 without streaming
}

// caller holds how a client calls a model.
type caller struct {
	url     string
	http    *http.Client
	key     string
	retries int
	onChunk func() // called for each piece of text or arguments; may be nil
}

// client is one of the official clients, with or without streaming.
type client struct {
	name     string
	api      string
	isStream bool
	ask      func(context.Context, caller, Conversation) (answer, error)
}

// clients lists every client, with and without streaming.
var clients = []client{
	{"anthropic", APIMessages, false, askAnthropic},
	{"anthropic stream", APIMessages, true, streamAnthropic},
	{"openai", APIChatCompletions, false, askOpenAI},
	{"openai stream", APIChatCompletions, true, streamOpenAI},
}

// eachClient runs a test with every client, in parallel.
func eachClient(t *testing.T, test func(*testing.T, client)) {
	t.Helper()
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

func (c caller) chunk() {
	if c.onChunk != nil {
		c.onChunk()
	}
}

// anthropicClient returns a client of the Messages API.
func (c caller) anthropicClient() anthropicsdk.Client {
	options := []anthropicoption.RequestOption{
		anthropicoption.WithoutEnvironmentDefaults(), anthropicoption.WithBaseURL(c.url), anthropicoption.WithHTTPClient(c.http),
		anthropicoption.WithMaxRetries(c.retries), anthropicoption.WithAPIKey(c.key),
	}
	return anthropicsdk.NewClient(options...)
}

// anthropicParams returns a request of the Messages API.
func anthropicParams(c Conversation) anthropicsdk.MessageNewParams {
	params := anthropicsdk.MessageNewParams{Model: anthropicsdk.Model(c.Model), MaxTokens: 1000}
	if c.System != "" {
		params.System = []anthropicsdk.TextBlockParam{{Text: c.System}}
	}
	for _, tool := range c.Tools {
		schema := anthropicsdk.ToolInputSchemaParam{}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			panic(err)
		}
		params.Tools = append(params.Tools, anthropicsdk.ToolUnionParam{OfTool: &anthropicsdk.ToolParam{
			Name: tool.Name, Description: anthropicsdk.String(tool.Description), InputSchema: schema,
		}})
	}
	for _, m := range c.Messages {
		var blocks []anthropicsdk.ContentBlockParamUnion
		for _, result := range m.ToolResults {
			blocks = append(blocks, anthropicsdk.NewToolResultBlock(result.ID, result.Text, result.IsError))
		}
		if m.Text != "" {
			blocks = append(blocks, anthropicsdk.NewTextBlock(m.Text))
		}
		for _, call := range m.ToolCalls {
			blocks = append(blocks, anthropicsdk.NewToolUseBlock(call.ID, json.RawMessage(call.Arguments), call.Name))
		}
		role := anthropicsdk.MessageParamRole(m.Role)
		if m.Role == RoleTool {
			role = anthropicsdk.MessageParamRoleUser
		}
		params.Messages = append(params.Messages, anthropicsdk.MessageParam{Role: role, Content: blocks})
	}
	return params
}

// anthropicAnswer returns the answer in a message.
func anthropicAnswer(m anthropicsdk.Message) answer {
	a := answer{StopReason: string(m.StopReason), Usage: Usage{
		Input: int(m.Usage.InputTokens), Output: int(m.Usage.OutputTokens),
		CacheRead: int(m.Usage.CacheReadInputTokens), CacheWrite: int(m.Usage.CacheCreationInputTokens),
	}}
	for _, block := range m.Content {
		switch block.Type {
		case "text":
			a.Text += block.Text
		case "tool_use":
			a.ToolCalls = append(a.ToolCalls, ToolCall{block.ID, block.Name, Arguments(block.Input)})
		}
	}
	return a
}

func askAnthropic(ctx context.Context, c caller, conversation Conversation) (answer, error) {
	client := c.anthropicClient()
	message, err := client.Messages.New(ctx, anthropicParams(conversation))
	if err != nil {
		return answer{}, err
	}
	return anthropicAnswer(*message), nil
}

func streamAnthropic(ctx context.Context, c caller, conversation Conversation) (answer, error) {
	client := c.anthropicClient()
	stream := client.Messages.NewStreaming(ctx, anthropicParams(conversation))
	defer stream.Close()
	var message anthropicsdk.Message
	written := map[int64]Arguments{} // by block, because Accumulate replaces broken JSON by {}
	chunks := 0
	for stream.Next() {
		event := stream.Current()
		if err := message.Accumulate(event); err != nil {
			return answer{}, err
		}
		if event.Type == "content_block_delta" && event.Delta.Text+event.Delta.PartialJSON != "" {
			written[event.Index] += Arguments(event.Delta.PartialJSON)
			chunks++
			c.chunk()
		}
	}
	a := anthropicAnswer(message)
	a.Chunks = chunks
	for i, block := range message.Content {
		if block.Type == "tool_use" {
			a.ToolCalls[len(a.ToolCalls)-len(message.Content)+i].Arguments = written[int64(i)]
		}
	}
	return a, stream.Err()
}

// openaiClient returns a client of Chat Completions.
func (c caller) openaiClient() openaisdk.Client {
	return openaisdk.NewClient(openaioption.WithBaseURL(c.url+"/v1"), openaioption.WithHTTPClient(c.http),
		openaioption.WithMaxRetries(c.retries), openaioption.WithAPIKey(c.key))
}

// openaiParams returns a request of Chat Completions.
func openaiParams(c Conversation) openaisdk.ChatCompletionNewParams {
	params := openaisdk.ChatCompletionNewParams{Model: c.Model}
	if c.System != "" {
		params.Messages = append(params.Messages, openaisdk.SystemMessage(c.System))
	}
	for _, tool := range c.Tools {
		var schema openaisdk.FunctionParameters
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			panic(err)
		}
		params.Tools = append(params.Tools, openaisdk.ChatCompletionFunctionTool(openaisdk.FunctionDefinitionParam{
			Name: tool.Name, Description: openaisdk.String(tool.Description), Parameters: schema,
		}))
	}
	for _, m := range c.Messages {
		for _, result := range m.ToolResults {
			params.Messages = append(params.Messages, openaisdk.ToolMessage(result.Text, result.ID))
		}
		switch {
		case m.Role == RoleAssistant:
			message := openaisdk.AssistantMessage(m.Text)
			for _, call := range m.ToolCalls {
				message.OfAssistant.ToolCalls = append(message.OfAssistant.ToolCalls, openaisdk.ChatCompletionMessageToolCallUnionParam{
					OfFunction: &openaisdk.ChatCompletionMessageFunctionToolCallParam{
						ID:       call.ID,
						Function: openaisdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name, Arguments: string(call.Arguments)},
					},
				})
			}
			params.Messages = append(params.Messages, message)
		case m.Text != "":
			params.Messages = append(params.Messages, openaisdk.UserMessage(m.Text))
		}
	}
	return params
}

// openaiStopReasons maps finish reasons to stop reasons.
var openaiStopReasons = map[string]string{"stop": StopEndTurn, "tool_calls": StopToolUse, "length": StopMaxTokens, "content_filter": StopRefusal}

// openaiAnswer returns the answer in a completion.
func openaiAnswer(c openaisdk.ChatCompletion) answer {
	cached := int(c.Usage.PromptTokensDetails.CachedTokens)
	a := answer{Usage: Usage{Input: int(c.Usage.PromptTokens) - cached, Output: int(c.Usage.CompletionTokens), CacheRead: cached}}
	for _, choice := range c.Choices {
		a.Text = choice.Message.Content
		a.StopReason = openaiStopReasons[choice.FinishReason]
		for _, call := range choice.Message.ToolCalls {
			a.ToolCalls = append(a.ToolCalls, ToolCall{call.ID, call.Function.Name, Arguments(call.Function.Arguments)})
		}
	}
	return a
}

func askOpenAI(ctx context.Context, c caller, conversation Conversation) (answer, error) {
	client := c.openaiClient()
	completion, err := client.Chat.Completions.New(ctx, openaiParams(conversation))
	if err != nil {
		return answer{}, err
	}
	return openaiAnswer(*completion), nil
}

func streamOpenAI(ctx context.Context, c caller, conversation Conversation) (answer, error) {
	client := c.openaiClient()
	params := openaiParams(conversation)
	params.StreamOptions.IncludeUsage = openaisdk.Bool(true)
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var whole openaisdk.ChatCompletionAccumulator
	chunks := 0
	for stream.Next() {
		chunk := stream.Current()
		if !whole.AddChunk(chunk) {
			panic("the chunk does not belong to the completion")
		}
		for _, choice := range chunk.Choices {
			text := choice.Delta.Content
			for _, call := range choice.Delta.ToolCalls {
				text += call.Function.Arguments
			}
			if text != "" {
				chunks++
				c.chunk()
			}
		}
	}
	a := openaiAnswer(whole.ChatCompletion)
	a.Chunks = chunks
	return a, stream.Err()
}

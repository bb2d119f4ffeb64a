package model

import (
	"regexp"
	"strings"

	"github.com/openai/openai-go/v3"
)

// openaiModels matches the names of OpenAI's own models, which require max_completion_tokens and reject max_tokens.
// Other servers know only max_tokens.
var openaiModels = regexp.MustCompile(`^(openai/)?(gpt-[0-9]|o[0-9]|chatgpt-)`)

// openaiRequest returns a request for the Chat Completions API.
func openaiRequest(r Request) (openai.ChatCompletionNewParams, error) {
	params := openai.ChatCompletionNewParams{Model: r.Model}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	switch {
	case r.MaxTokens == 0:
	case openaiModels.MatchString(r.Model):
		params.MaxCompletionTokens = openai.Int(int64(r.MaxTokens))
	default:
		params.MaxTokens = openai.Int(int64(r.MaxTokens))
	}
	if strings.TrimSpace(r.System) != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(r.System))
	}
	for _, m := range r.Messages {
		params.Messages = append(params.Messages, openaiMessages(m)...)
	}
	for _, t := range r.Tools {
		schema, err := wireSchema(t)
		if err != nil {
			return params, err
		}
		function := openai.FunctionDefinitionParam{Name: t.Name, Parameters: schema}
		if t.Description != "" {
			function.Description = openai.String(t.Description)
		}
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(function))
	}
	return params, nil
}

// openaiMessages returns the wire messages for a message: one for each tool result, then one for everything else.
func openaiMessages(m Message) []openai.ChatCompletionMessageParamUnion {
	var wire []openai.ChatCompletionMessageParamUnion
	var texts []string
	var calls []openai.ChatCompletionMessageToolCallUnionParam
	for _, p := range m.Parts {
		switch {
		case p.Result != nil:
			text := p.Result.Text
			if p.Result.IsError {
				text = "Error: " + text // the API has no field for it
			}
			wire = append(wire, openai.ToolMessage(text, p.Result.ID))
		case p.Call != nil:
			function := openai.ChatCompletionMessageFunctionToolCallFunctionParam{
				Name: wireName(p.Call.Name), Arguments: string(wireArguments(p.Call)),
			}
			calls = append(calls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: p.Call.ID, Function: function},
			})
		case p.Text != "":
			texts = append(texts, p.Text)
		}
	}
	text := strings.Join(texts, "\n")
	switch {
	case text == "" && len(calls) == 0:
	case m.Role == Assistant:
		message := openai.AssistantMessage(text)
		message.OfAssistant.ToolCalls = calls
		wire = append(wire, message)
	default:
		wire = append(wire, openai.UserMessage(text))
	}
	return wire
}

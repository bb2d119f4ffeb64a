package scriptedmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Conversation is the conversation that a request asks the model to continue, in one form for both APIs.
type Conversation struct {
	Model    string
	System   string // texts of the system prompt, joined by line feeds
	Messages []Message
	Tools    []Tool
}

// Message is a message of a conversation, without the system prompt. Tool results are in messages with the role user in
// the Messages API, and with the role tool in Chat Completions.
type Message struct {
	Role        string
	Text        string // texts of all parts, joined by line feeds
	Thinking    string // only in the Messages API, joined likewise
	ToolCalls   []ToolCall
	ToolResults []ToolResult
}

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// ToolResult is the result of a tool call.
type ToolResult struct {
	ID      string // ID of the call
	Name    string // name of the tool, or "" if the conversation has no such call
	Text    string
	IsError bool // always false in Chat Completions, which has no such field
}

// Tool is a tool that a request offers to the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // schema of the arguments
}

// Turns returns the number of model replies in the conversation.
func (c Conversation) Turns() int {
	turns := 0
	for _, message := range c.Messages {
		if message.Role == RoleAssistant {
			turns++
		}
	}
	return turns
}

// LastUserText returns the text of the last user message with text, or "".
func (c Conversation) LastUserText() string {
	for _, message := range slices.Backward(c.Messages) {
		if message.Role == RoleUser && message.Text != "" {
			return message.Text
		}
	}
	return ""
}

// NewToolResults returns the results of tools since the last reply of the model.
func (c Conversation) NewToolResults() []ToolResult {
	var results []ToolResult
	for _, message := range slices.Backward(c.Messages) {
		if message.Role == RoleAssistant {
			break
		}
		results = append(slices.Clone(message.ToolResults), results...)
	}
	return results
}

// matches reports whether all conditions of a rule hold for a conversation.
func (w When) matches(c Conversation) bool {
	return strings.Contains(c.LastUserText(), w.User) &&
		strings.Contains(c.System, w.System) &&
		(w.Model == "" || w.Model == c.Model) &&
		(w.Turns == nil || *w.Turns == c.Turns()) &&
		(w.ToolResult == "" && w.ToolResultText == "" || slices.ContainsFunc(c.NewToolResults(), w.matchesResult))
}

// matchesResult reports whether a tool result meets the conditions of a rule.
func (w When) matchesResult(r ToolResult) bool {
	return (w.ToolResult == "" || r.Name == w.ToolResult) && strings.Contains(r.Text, w.ToolResultText)
}

// resolveTools sets the tool names of results. It returns an error unless every tool call has exactly one result before
// the next reply, and every result has a call. Both providers refuse other conversations.
func (c Conversation) resolveTools() error {
	if len(c.Messages) == 0 {
		return errors.New("messages: at least one message is required")
	}
	open := map[string]string{} // names of tools by the IDs of calls without a result
	for i, message := range c.Messages {
		for j, result := range message.ToolResults {
			name, isOpen := open[result.ID]
			if !isOpen {
				return fmt.Errorf("messages.%d: the tool result %q answers no tool call of the reply before it", i, result.ID)
			}
			message.ToolResults[j].Name = name
			delete(open, result.ID)
		}
		if len(open) > 0 && message.Role != RoleTool {
			return fmt.Errorf("messages.%d: tool calls have no result: %v", i, slices.Sorted(maps.Keys(open)))
		}
		for _, call := range message.ToolCalls {
			open[call.ID] = call.Name
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: tool calls have no result: %v", slices.Sorted(maps.Keys(open)))
	}
	return nil
}

// words returns the number of words in a conversation.
func (c Conversation) words() int {
	n := countWords(c.System)
	for _, message := range c.Messages {
		n += countWords(message.Text)
		for _, call := range message.ToolCalls {
			n += countWords(string(call.Arguments))
		}
		for _, result := range message.ToolResults {
			n += countWords(result.Text)
		}
	}
	return n
}

// countWords returns the number of words of a text.
func countWords(text string) int { return len(strings.Fields(text)) }

package scriptedmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Conversation is what a request asks the model to continue, in the same form for both APIs.
type Conversation struct {
	Model    string
	System   string // the texts of the system prompt, joined by line feeds
	Messages []Message
	Tools    []Tool
}

// Message is a message of a conversation, without its system prompt. Tool results are in messages of the role user in the
// Messages API, and in messages of the role tool in Chat Completions.
type Message struct {
	Role        string
	Text        string // the texts of all parts, joined by line feeds
	Thinking    string // in the Messages API, joined likewise
	ToolCalls   []ToolCall
	ToolResults []ToolResult
}

// Roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// ToolResult is the answer of a tool to a call.
type ToolResult struct {
	ID      string // of the call
	Name    string // of the tool, or "" if the conversation has no such call
	Text    string
	IsError bool // always false in Chat Completions, which do not have it
}

// Tool is a tool that a request offers to the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // of the arguments
}

// Turns returns how many replies of the model the conversation has.
func (c Conversation) Turns() int {
	turns := 0
	for _, message := range c.Messages {
		if message.Role == RoleAssistant {
			turns++
		}
	}
	return turns
}

// LastUserText returns the text of the last user message that has some, or "".
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

// matchesResult reports whether a result of a tool meets the conditions of a rule.
func (w When) matchesResult(r ToolResult) bool {
	return (w.ToolResult == "" || r.Name == w.ToolResult) && strings.Contains(r.Text, w.ToolResultText)
}

// resolveTools names the tools of results, and returns an error unless every tool call has one result before the next
// reply, and every result a call. Both providers refuse such conversations.
func (c Conversation) resolveTools() error {
	if len(c.Messages) == 0 {
		return errors.New("messages: at least one message is required")
	}
	open := map[string]string{} // names of tools by IDs of calls that have no result yet
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

// words returns how many words a conversation has.
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

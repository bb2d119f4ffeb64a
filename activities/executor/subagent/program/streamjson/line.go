package streamjson

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	v1 "switchyard/proto/switchyard/v1"
)

// Types of lines; others are ignored.
const (
	typeSystem    = "system"
	typeAssistant = "assistant"
	typeUser      = "user"
	typeResult    = "result"
)

// Line is a line of the stream.
type Line struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Model     string          `json:"model"`
	Message   *Message        `json:"message"`
	IsError   bool            `json:"is_error"`
	Result    text            `json:"result"`
	Errors    texts           `json:"errors"`
	Output    json.RawMessage `json:"structured_output"`
	NumTurns  count           `json:"num_turns"`
	CostUSD   amount          `json:"total_cost_usd"`
	Usage     Usage           `json:"usage"`
}

// Message is a message of the model or a tool.
type Message struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Content blocks `json:"content"`
	Usage   Usage  `json:"usage"`
}

// Block is a part of a message.
type Block struct {
	Type      string          `json:"type"`
	Text      text            `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

// Usage counts the tokens of a message, or of the whole session.
type Usage struct {
	Input      count `json:"input_tokens"`
	Output     count `json:"output_tokens"`
	CacheRead  count `json:"cache_read_input_tokens"`
	CacheWrite count `json:"cache_creation_input_tokens"`
}

// ParseLine parses a line of the stream. It returns nil if the text is not one.
func ParseLine(line []byte) *Line {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return nil
	}
	var l Line
	if json.Unmarshal(line, &l) != nil || l.Type == "" {
		return nil
	}
	return &l
}

// IsCutResult reports whether a truncated line begins like a result.
func IsCutResult(start []byte) bool {
	start = bytes.ReplaceAll(start[:min(len(start), 64)], []byte(" "), nil)
	return bytes.HasPrefix(start, []byte(`{"type":"result"`))
}

// InitSession returns the id of the session that the line starts, or "".
func (l *Line) InitSession() string {
	if l.Type != typeSystem || l.Subtype != "init" || !v1.IsSessionID(l.SessionID) {
		return ""
	}
	return l.SessionID
}

// IsResult reports whether the line ends the turn.
func (l *Line) IsResult() bool { return l.Type == typeResult }

// text is a string. Any other JSON value becomes "".
type text string

// UnmarshalJSON accepts any value and never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

// texts is a list of strings. Any other JSON value becomes an empty list.
type texts []text

// UnmarshalJSON accepts any value and never fails.
func (t *texts) UnmarshalJSON(b []byte) error {
	var list []text
	if json.Unmarshal(b, &list) == nil {
		*t = list
	}
	return nil
}

// blocks are the blocks of a message, whose content may also be a single string.
type blocks []Block

// UnmarshalJSON accepts a list of blocks, or a string.
func (c *blocks) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s text
		_ = s.UnmarshalJSON(b)
		*c = blocks{{Type: "text", Text: s}}
		return nil
	}
	return json.Unmarshal(b, (*[]Block)(c))
}

// count is a non-negative number. Any other JSON value becomes 0.
type count int64

// UnmarshalJSON accepts any value and never fails.
func (c *count) UnmarshalJSON(b []byte) error {
	var a amount
	_ = a.UnmarshalJSON(b)
	*c = count(min(a, 1<<50))
	return nil
}

// amount is a non-negative sum. Any other JSON value becomes 0.
type amount float64

// UnmarshalJSON accepts any value and never fails.
func (a *amount) UnmarshalJSON(b []byte) error {
	if f, err := strconv.ParseFloat(string(b), 64); err == nil && f > 0 && !math.IsInf(f, 0) {
		*a = amount(f)
	}
	return nil
}

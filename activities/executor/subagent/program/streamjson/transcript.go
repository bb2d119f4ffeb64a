package streamjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// MaxEvents bounds how many of the newest events are kept.
	MaxEvents = 1000
	// maxOpen bounds the messages and the calls that later lines may refer to.
	maxOpen = 256
	// maxLogInput, maxName and maxError bound texts, in bytes.
	maxLogInput = 300
	maxName     = 128
	maxError    = 500
)

// Transcript summarizes a stream up to its first result.
type Transcript struct {
	// Session is the session id that the program reported, or "".
	Session string
	// Result is the line that ends the stream, or nil if none has come yet.
	Result *Line

	now      func() time.Time
	usage    v1.AgentUsage
	events   []*historyv1.AgentEvent
	messages open[*message]
	calls    open[*historyv1.AgentEvent]
	// idle is when the model began to work on its next reply.
	idle time.Time
	// said is the latest text of the model.
	said string
	// longResult reports whether the result line was too long to parse.
	longResult bool
}

// message is a reply of the model, which may span several lines.
type message struct {
	turn  int32
	usage Usage
	event *historyv1.AgentEvent
}

// NewTranscript returns an empty transcript that begins now.
func NewTranscript(now func() time.Time) *Transcript {
	return &Transcript{now: now, idle: now()}
}

// Add adds a line that lacks its last cut bytes. It returns the text to log for the line.
func (t *Transcript) Add(line []byte, cut int64) string {
	if cut > 0 {
		if t.Result == nil && IsCutResult(line) {
			t.Result, t.longResult = &Line{Type: typeResult}, true
		}
		return fmt.Sprintf("%s... [line cut: %d bytes are too long]\n", clip(string(line), maxLogInput), int64(len(line))+cut)
	}
	l := ParseLine(line)
	switch {
	case l == nil:
		return string(line) + "\n"
	case t.Result != nil:
		return ""
	}
	switch l.Type {
	case typeSystem:
		if id := l.InitSession(); id != "" && t.Session == "" {
			t.Session = id
			t.usage.Model = clip(l.Model, maxName)
		}
	case typeAssistant:
		return t.addReply(l.Message)
	case typeUser:
		t.addToolResults(l.Message)
	case typeResult:
		t.Result = l
		if answer := strings.TrimSpace(string(l.Result)); answer != "" && answer != strings.TrimSpace(t.said) && !l.IsError {
			return answer + "\n"
		}
	}
	return ""
}

// addReply adds a line of a reply. It returns the text of the line and a log line for each tool call.
func (t *Transcript) addReply(m *Message) string {
	if m == nil {
		return ""
	}
	now := t.now()
	one, known := t.messages.find(m.ID)
	if !known {
		t.usage.Turns++
		one = &message{turn: t.usage.Turns, event: &historyv1.AgentEvent{At: timestamppb.New(t.idle), Event: v1.EventTurn, Turn: t.usage.Turns}}
		t.messages.put(m.ID, one)
		t.addEvent(one.event)
	}
	t.usage.InputTokens += int64(grow(&one.usage.Input, m.Usage.Input))
	t.usage.OutputTokens += int64(grow(&one.usage.Output, m.Usage.Output))
	t.usage.CacheReadTokens += int64(grow(&one.usage.CacheRead, m.Usage.CacheRead))
	t.usage.CacheWriteTokens += int64(grow(&one.usage.CacheWrite, m.Usage.CacheWrite))
	if m.Model != "" {
		t.usage.Model = clip(m.Model, maxName)
	}
	one.event.TookMs = max(0, now.Sub(one.event.At.AsTime()).Milliseconds())
	one.event.InputTokens = int64(one.usage.Input + one.usage.CacheRead + one.usage.CacheWrite)
	one.event.OutputTokens = int64(one.usage.Output)
	t.idle = now
	var log strings.Builder
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			if b.Text != "" {
				t.said = string(b.Text)
				log.WriteString(strings.TrimSuffix(t.said, "\n") + "\n")
			}
		case "tool_use":
			t.usage.ToolCalls++
			call := &historyv1.AgentEvent{At: timestamppb.New(now), Event: v1.EventToolCall, Turn: one.turn, Tool: clip(b.Name, maxName), Error: "no result"}
			t.calls.put(b.ID, call)
			t.addEvent(call)
			fmt.Fprintf(&log, "[%s] %s\n", call.Tool, oneLine(b.Input))
		}
	}
	return log.String()
}

// addToolResults ends the calls whose results are in a message.
func (t *Transcript) addToolResults(m *Message) {
	if m == nil {
		return
	}
	t.idle = t.now()
	for _, b := range m.Content {
		if b.Type != "tool_result" {
			continue
		}
		call, found := t.calls.remove(b.ToolUseID)
		if !found {
			continue
		}
		call.TookMs, call.Error = max(0, t.idle.Sub(call.At.AsTime()).Milliseconds()), ""
		if b.IsError {
			call.Error = clip(resultText(b.Content), maxError)
		}
	}
}

// resultText returns the text of a tool result, or a default if it has none.
func resultText(content json.RawMessage) string {
	var parts blocks
	_ = parts.UnmarshalJSON(content)
	var all []string
	for _, b := range parts {
		if b.Text != "" {
			all = append(all, string(b.Text))
		}
	}
	if text := strings.TrimSpace(strings.Join(all, "\n")); text != "" {
		return text
	}
	return "the tool failed"
}

func (t *Transcript) addEvent(e *historyv1.AgentEvent) {
	if len(t.events) >= 2*MaxEvents {
		t.events = append(t.events[:0], t.events[len(t.events)-MaxEvents:]...)
	}
	t.events = append(t.events, e)
}

// Events returns the newest turns and tool calls, oldest first.
func (t *Transcript) Events() []*historyv1.AgentEvent {
	return t.events[max(0, len(t.events)-MaxEvents):]
}

// Usage returns the usage of the agent: the figures of the result if there are any, else the sum of the replies.
func (t *Transcript) Usage() *v1.AgentUsage {
	u := &v1.AgentUsage{
		Model: t.usage.Model, Turns: t.usage.Turns, ToolCalls: t.usage.ToolCalls, Session: t.Session,
		InputTokens: t.usage.InputTokens, OutputTokens: t.usage.OutputTokens,
		CacheReadTokens: t.usage.CacheReadTokens, CacheWriteTokens: t.usage.CacheWriteTokens,
	}
	if t.Result == nil {
		return u
	}
	u.CostUsd = float64(t.Result.CostUSD)
	if u.Turns == 0 {
		u.Turns = int32(min(t.Result.NumTurns, 1<<30))
	}
	if own := t.Result.Usage; own != (Usage{}) {
		u.InputTokens, u.OutputTokens = int64(own.Input), int64(own.Output)
		u.CacheReadTokens, u.CacheWriteTokens = int64(own.CacheRead), int64(own.CacheWrite)
	}
	return u
}

// Text returns the answer: the text of the result, else the latest text of the model.
func (t *Transcript) Text() string {
	if t.Result != nil && t.Result.Result != "" {
		return string(t.Result.Result)
	}
	return t.said
}

// Output returns the structured output of the result, or nil if there is none.
func (t *Transcript) Output() json.RawMessage {
	if t.Result == nil || len(t.Result.Output) == 0 {
		return nil
	}
	return t.Result.Output
}

// Failure returns why the result does not complete the task, or nil if it does. It must be called only after a result.
func (t *Transcript) Failure() *executor.Failure {
	r := t.Result
	if t.longResult {
		return &executor.Failure{Reason: v1.ReasonOutput, Err: fmt.Errorf("the result line of the program is longer than %d MiB", MaxLine>>20)}
	}
	said := strings.TrimSpace(string(r.Result))
	if said == "" {
		var all []string
		for _, e := range r.Errors {
			all = append(all, string(e))
		}
		said = strings.TrimSpace(strings.Join(all, "; "))
	}
	said = clip(strings.Join(strings.Fields(said), " "), maxError)
	switch {
	case r.Subtype == "error_max_turns":
		return &executor.Failure{Reason: v1.ReasonMaxTurns, Err: fmt.Errorf("the program reached its limit of turns (%d)", r.NumTurns)}
	case r.Subtype == "error_max_budget_usd":
		return &executor.Failure{Reason: v1.ReasonMaxCost, Err: fmt.Errorf("the program reached its cost limit ($%.4f)", r.CostUSD)}
	case r.IsError && r.Subtype == "success":
		// claude-code reports a refusal by its provider like this.
		return &executor.Failure{Reason: v1.ReasonProvider, Err: errorOf("the program reports an error", said)}
	case r.IsError, strings.HasPrefix(r.Subtype, "error"):
		return &executor.Failure{Reason: v1.ReasonExitCode, Err: errorOf("the program reports "+clip(r.Subtype, maxName), said)}
	}
	return nil
}

func errorOf(what, said string) error {
	if said == "" {
		return errors.New(what)
	}
	return errors.New(what + ": " + said)
}

// grow raises a count to a later value, and returns the difference.
func grow(to *count, later count) count {
	more := max(0, later-*to)
	*to += more
	return more
}

// oneLine returns JSON on one line, for the log.
func oneLine(raw json.RawMessage) string {
	return clip(strings.Join(strings.Fields(string(raw)), " "), maxLogInput)
}

// clip truncates a text to at most most bytes, without splitting a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.ToValidUTF8(s[:most], "\uFFFD") + "..."
}

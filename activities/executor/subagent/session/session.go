package session

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor/subagent/model"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Session is the state that results from the entries of a journal. Only one goroutine at a time may use it.
type Session struct {
	messages []model.Message
	usage    v1.AgentUsage
	events   []*historyv1.AgentEvent // not reported yet
	calls    []*call                 // of the latest reply
	// answer and stop are the text and the stop reason of the latest reply, including the replies that it continues, if
	// isAnswered is set.
	answer      string
	stop        model.Stop
	isAnswered  bool
	isContinued bool // whether the next reply continues the latest one, which was cut off
	repliedAt   time.Time
	program     Program
}

// call is a tool call.
type call struct {
	model.Call
	began  *CallBegan
	result *model.CallResult
}

// New returns a session that begins with a prompt.
func New(prompt string) *Session {
	return &Session{messages: []model.Message{text(prompt)}}
}

func text(s string) model.Message {
	return model.Message{Role: model.User, Parts: []model.Part{{Text: s}}}
}

// Add adds an entry. An entry that does not fit the state is an error, after which the session is unusable.
func (s *Session) Add(e Entry) error {
	switch {
	case e.Reply != nil:
		if len(s.Pending()) > 0 {
			return fmt.Errorf("journal: reply before the end of call %s", s.Pending()[0].ID)
		}
		s.addReply(e.Reply)
	case e.Began != nil:
		c := s.find(e.Began.ID)
		if c == nil {
			return fmt.Errorf("journal: start of unknown call %s", e.Began.ID)
		}
		c.began = e.Began
	case e.Ended != nil:
		c := s.find(e.Ended.ID)
		if c == nil {
			return fmt.Errorf("journal: end of unknown call %s", e.Ended.ID)
		}
		s.endCall(c, e.Ended)
	case e.Note != "":
		s.addNote(e.Note)
	case e.Program != nil:
		s.program = Program{Session: e.Program.Session, Node: e.Program.Node}
		if err := s.addProgramUsage(e.Program.Usage); err != nil {
			return err
		}
	case e.Reported:
		s.events = nil
	}
	return nil
}

func (s *Session) addReply(r *Reply) {
	if !s.isContinued {
		s.answer = ""
	}
	s.calls, s.stop, s.repliedAt, s.isContinued = nil, r.Stop, r.At, false
	// Providers reject an assistant message without content.
	if len(r.Message.Parts) > 0 {
		s.messages = append(s.messages, r.Message)
	}
	for _, part := range r.Message.Parts {
		if part.Call != nil {
			s.calls = append(s.calls, &call{Call: *part.Call})
		}
		s.answer += part.Text
	}
	s.isAnswered = len(s.calls) == 0
	s.usage.Turns++
	s.usage.Model = r.Model
	s.usage.InputTokens += r.Usage.InputTokens
	s.usage.OutputTokens += r.Usage.OutputTokens
	s.usage.CacheReadTokens += r.Usage.CacheReadTokens
	s.usage.CacheWriteTokens += r.Usage.CacheWriteTokens
	s.usage.CostUsd += r.Cost
	s.events = append(s.events, &historyv1.AgentEvent{
		At: timestamppb.New(r.At), Event: v1.EventTurn, Turn: s.usage.Turns, TookMs: r.TookMs,
		InputTokens:  r.Usage.InputTokens + r.Usage.CacheReadTokens + r.Usage.CacheWriteTokens,
		OutputTokens: r.Usage.OutputTokens, CostUsd: r.Cost,
	})
}

func (s *Session) find(id string) *call {
	for _, c := range s.calls {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// endCall records the result of a call. When all calls of a reply have ended, their results become the next message.
func (s *Session) endCall(c *call, end *CallEnded) {
	if c.result != nil {
		return
	}
	c.result = &end.CallResult
	s.usage.ToolCalls++
	at := s.repliedAt
	if c.began != nil {
		at = c.began.At
	}
	event := &historyv1.AgentEvent{At: timestamppb.New(at), Event: v1.EventToolCall, Turn: s.usage.Turns, Tool: c.Name, TookMs: end.TookMs}
	if end.IsError {
		event.Error = firstLine(end.Text)
	}
	s.events = append(s.events, event)
	if len(s.Pending()) > 0 {
		return
	}
	results := model.Message{Role: model.User}
	for _, c := range s.calls {
		results.Parts = append(results.Parts, model.Part{Result: c.result})
	}
	s.messages, s.calls = append(s.messages, results), nil
}

// addNote appends to the latest user message, or begins one. A note after a reply that was cut off asks for its
// continuation.
func (s *Session) addNote(note string) {
	s.isContinued = s.isAnswered && s.stop == model.StopLength
	last := &s.messages[len(s.messages)-1]
	if last.Role == model.User {
		last.Parts = append(last.Parts, model.Part{Text: note})
	} else {
		s.messages = append(s.messages, text(note))
	}
	s.isAnswered = false
}

// Call is a call without a result.
type Call struct {
	model.Call
	// Began is when and where the call began, or nil if it has not begun.
	Began *CallBegan
}

// Pending returns the calls of the latest reply without a result, in order.
func (s *Session) Pending() []Call {
	var pending []Call
	for _, c := range s.calls {
		if c.result == nil {
			pending = append(pending, Call{Call: c.Call, Began: c.began})
		}
	}
	return pending
}

// Answer returns the text of the latest reply, preceded by that of the replies it continues, and its stop reason. ok is
// false if the model has to reply next, or if calls are pending.
func (s *Session) Answer() (answer string, stop model.Stop, ok bool) {
	return s.answer, s.stop, s.isAnswered
}

// Messages returns the conversation for the next request. The caller must not modify it.
func (s *Session) Messages() []model.Message { return s.messages }

// Usage returns the usage of the agent so far.
func (s *Session) Usage() *v1.AgentUsage { return &s.usage }

// Events returns the turns and calls that no attempt has reported, oldest first.
func (s *Session) Events() []*historyv1.AgentEvent { return s.events }

// Program returns the latest session of a program that drives the agent, or a zero Program.
func (s *Session) Program() Program { return s.program }

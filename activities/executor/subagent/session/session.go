package session

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor/subagent/model"
	v1 "switchyard/proto/switchyard/v1"
)

// Session is the state that the entries of a journal add up to. It is used by one goroutine at a time.
type Session struct {
	messages []model.Message
	usage    v1.AgentUsage
	events   []*v1.AgentEvent // that are not reported
	calls    []*call          // of the newest reply
	// answer and stop are the text and the end of the newest reply, with the replies that it continues, if isAnswered.
	answer      string
	stop        model.Stop
	isAnswered  bool
	isContinued bool // by the next reply, because the newest one was cut off
	repliedAt   time.Time
	program     Program
}

// call is a call of a tool.
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

// Add adds an entry. An entry that does not belong where it stands is an error, and the session is of no use afterwards.
func (s *Session) Add(e Entry) error {
	switch {
	case e.Reply != nil:
		if len(s.Pending()) > 0 {
			return fmt.Errorf("the journal has a reply before the end of call %s", s.Pending()[0].ID)
		}
		s.addReply(e.Reply)
	case e.Began != nil:
		c := s.find(e.Began.ID)
		if c == nil {
			return fmt.Errorf("the journal has the start of call %s, which no reply asks for", e.Began.ID)
		}
		c.began = e.Began
	case e.Ended != nil:
		c := s.find(e.Ended.ID)
		if c == nil {
			return fmt.Errorf("the journal has the end of call %s, which no reply asks for", e.Ended.ID)
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
	// Providers refuse a message of the assistant without content.
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
	s.events = append(s.events, &v1.AgentEvent{
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

// endCall notes the result of a call. When all calls of a reply have ended, their results are the next message.
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
	event := &v1.AgentEvent{At: timestamppb.New(at), Event: v1.EventToolCall, Turn: s.usage.Turns, Tool: c.Name, TookMs: end.TookMs}
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

// addNote adds to the newest message of the user, or begins one. A note after a reply that was cut off asks to continue it.
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

// Call is a call that has no result.
type Call struct {
	model.Call
	// Began is when and where the call began, or nil if it has not.
	Began *CallBegan
}

// Pending returns the calls of the newest reply that have no result, in their order.
func (s *Session) Pending() []Call {
	var pending []Call
	for _, c := range s.calls {
		if c.result == nil {
			pending = append(pending, Call{Call: c.Call, Began: c.began})
		}
	}
	return pending
}

// Answer returns the text of the newest reply, after that of the replies that it continues, and how it ended. ok is false if
// the model has to reply next, or if calls are pending.
func (s *Session) Answer() (answer string, stop model.Stop, ok bool) {
	return s.answer, s.stop, s.isAnswered
}

// Messages returns the conversation for the next request. It must not be changed.
func (s *Session) Messages() []model.Message { return s.messages }

// Usage returns what the agent has used so far.
func (s *Session) Usage() *v1.AgentUsage { return &s.usage }

// Events returns the turns and calls that no attempt has reported, oldest first.
func (s *Session) Events() []*v1.AgentEvent { return s.events }

// Program returns the newest session of a program that leads the agent. It is empty if there is none.
func (s *Session) Program() Program { return s.program }

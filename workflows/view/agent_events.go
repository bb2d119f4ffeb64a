package view

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/phrase"
)

// logAgent logs the agent turns and tool calls of task i's ended attempt, each at the time of its own end.
func (s *Status) logAgent(i int, end *v1.Attempt) {
	for _, e := range s.entries[i].agentEvents {
		took := time.Duration(e.GetTookMs()) * time.Millisecond
		at := end.GetCompletedAt().AsTime()
		if e.GetAt() != nil {
			at = e.GetAt().AsTime().Add(took)
		}
		event, detail := v1.EventTurn, phrase.Turn(e.GetTurn(), took, e.GetInputTokens(), e.GetOutputTokens(), e.GetCostUsd(), e.GetError())
		if e.GetEvent() == v1.EventToolCall {
			event, detail = v1.EventToolCall, phrase.ToolCall(e.GetTool(), e.GetTurn(), took, e.GetError())
		}
		s.log.Add(at, event, i, end.GetNode(), end.GetAttempt(), end.GetClaim(), detail, eventlog.AgentFacts(e)...)
	}
	s.entries[i].agentEvents = nil
}

package session

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	v1 "switchyard/proto/switchyard/v1"
)

// ProgramUsage returns the entry for the usage of a program in an ended attempt.
func ProgramUsage(session, node string, usage *v1.AgentUsage) (Entry, error) {
	text, err := protojson.Marshal(usage)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Program: &Program{Session: session, Node: node, Usage: text}}, nil
}

// addProgramUsage adds the usage of a program in an attempt.
func (s *Session) addProgramUsage(text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	var u v1.AgentUsage
	if err := protojson.Unmarshal(text, &u); err != nil {
		return fmt.Errorf("read the usage of a program in the journal: %w", err)
	}
	s.usage.Model, s.usage.Session = u.GetModel(), u.GetSession()
	s.usage.Turns += u.GetTurns()
	s.usage.ToolCalls += u.GetToolCalls()
	s.usage.InputTokens += u.GetInputTokens()
	s.usage.OutputTokens += u.GetOutputTokens()
	s.usage.CacheReadTokens += u.GetCacheReadTokens()
	s.usage.CacheWriteTokens += u.GetCacheWriteTokens()
	s.usage.CostUsd += u.GetCostUsd()
	return nil
}

// maxEventError bounds the error of an event, in bytes.
const maxEventError = 200

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > maxEventError {
		line = strings.ToValidUTF8(line[:maxEventError], "") + "..."
	}
	return line
}

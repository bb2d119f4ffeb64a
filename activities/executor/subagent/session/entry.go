package session

import (
	"encoding/json"
	"fmt"
	"time"

	"switchyard/activities/executor/subagent/model"
)

// Entry is one record of a journal. Exactly one field is set.
type Entry struct {
	Reply *Reply     `json:"reply,omitempty"`
	Began *CallBegan `json:"began,omitempty"`
	Ended *CallEnded `json:"ended,omitempty"`
	// Note is a message to the agent after its prompt, such as a request to correct its answer.
	Note string `json:"note,omitempty"`
	// Program is the session of a program that drives the agent.
	Program *Program `json:"program,omitempty"`
	// Reported means that an attempt has reported all earlier events.
	Reported bool `json:"reported,omitempty"`
}

// Reply is a turn: a reply of the model.
type Reply struct {
	model.Reply
	At     time.Time `json:"at"`
	TookMs int64     `json:"tookMs"`
	// Cost is in US dollars; 0 means unknown.
	Cost float64 `json:"cost,omitempty"`
}

// CallBegan records that a tool call is about to start.
type CallBegan struct {
	ID   string    `json:"id"`
	Node string    `json:"node"`
	At   time.Time `json:"at"`
}

// CallEnded is the result of a call, as the model reads it.
type CallEnded struct {
	model.CallResult
	TookMs int64 `json:"tookMs"`
}

// Program is the session of a program that drives the agent, and what it used in an attempt.
type Program struct {
	Session string `json:"session"`
	Node    string `json:"node"`
	// Usage is the attempt's v1.AgentUsage as JSON; nil while the attempt runs.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// Encode returns the entry as text.
func (e Entry) Encode() ([]byte, error) { return json.Marshal(e) }

// Decode parses the text of an entry.
func Decode(text []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return Entry{}, fmt.Errorf("read an entry of the journal: %w", err)
	}
	return e, nil
}

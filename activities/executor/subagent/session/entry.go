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
	// Note is what the agent is asked besides its prompt, such as to correct its answer.
	Note string `json:"note,omitempty"`
	// Program is the session of a program that leads the agent.
	Program *Program `json:"program,omitempty"`
	// Reported says that an attempt has reported what is before it.
	Reported bool `json:"reported,omitempty"`
}

// Reply is a turn: what the model has replied.
type Reply struct {
	model.Reply
	At     time.Time `json:"at"`
	TookMs int64     `json:"tookMs"`
	// Cost is in US dollars; 0 if it is unknown.
	Cost float64 `json:"cost,omitempty"`
}

// CallBegan says that a call of a tool is about to start.
type CallBegan struct {
	ID   string    `json:"id"`
	Node string    `json:"node"`
	At   time.Time `json:"at"`
}

// CallEnded is what the model reads as the result of a call.
type CallEnded struct {
	model.CallResult
	TookMs int64 `json:"tookMs"`
}

// Program is what a program that leads the agent has named, and used in an attempt.
type Program struct {
	Session string `json:"session"`
	Node    string `json:"node"`
	// Usage is a JSON v1.AgentUsage of the attempt; nil while the attempt runs.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// Encode returns the text of an entry.
func (e Entry) Encode() ([]byte, error) { return json.Marshal(e) }

// Decode reads the text of an entry.
func Decode(text []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return Entry{}, fmt.Errorf("read an entry of the journal: %w", err)
	}
	return e, nil
}

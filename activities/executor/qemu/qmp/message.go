package qmp

import "encoding/json"

// Event is what a machine tells of itself.
type Event struct {
	// Name is such as "SHUTDOWN".
	Name string
	// Data is what belongs to it, or nil.
	Data json.RawMessage
}

// Error is the answer to a command that has failed.
type Error struct {
	// Command is the command.
	Command string `json:"-"`
	// Class is such as "CommandNotFound", mostly "GenericError".
	Class string `json:"class"`
	// Description is for people.
	Description string `json:"desc"`
}

// Error returns the description.
func (e *Error) Error() string { return e.Command + ": " + e.Description }

// request is a command.
type request struct {
	Execute   string `json:"execute"`
	Arguments any    `json:"arguments,omitempty"`
	ID        uint64 `json:"id"`
}

// message is what a machine sends: a greeting, an answer or an event.
type message struct {
	QMP    json.RawMessage `json:"QMP"`
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	ID     uint64          `json:"id"`
	Event  string          `json:"event"`
	Data   json.RawMessage `json:"data"`
}

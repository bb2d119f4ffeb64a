package qmp

import "encoding/json"

// Event is an asynchronous notification from a machine.
type Event struct {
	// Name is the type of the event, such as "SHUTDOWN".
	Name string
	// Data is the payload of the event, or nil.
	Data json.RawMessage
}

// Error is the answer to a command that failed.
type Error struct {
	// Command is the command that failed.
	Command string `json:"-"`
	// Class is the error class, such as "CommandNotFound" and mostly "GenericError".
	Class string `json:"class"`
	// Description is meant for people.
	Description string `json:"desc"`
}

// Error returns the command and the description.
func (e *Error) Error() string { return e.Command + ": " + e.Description }

// request is a command to a machine.
type request struct {
	Execute   string `json:"execute"`
	Arguments any    `json:"arguments,omitempty"`
	ID        uint64 `json:"id"`
}

// message is anything that a machine sends: a greeting, an answer or an event.
type message struct {
	QMP    json.RawMessage `json:"QMP"`
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	ID     uint64          `json:"id"`
	Event  string          `json:"event"`
	Data   json.RawMessage `json:"data"`
}

package model

import "encoding/json"

// Role names the author of a message.
type Role string

// Authors of messages. Tool results come from the user.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is a piece of a message. Exactly one field is set.
type Part struct {
	Text   string      `json:"text,omitempty"`
	Call   *Call       `json:"call,omitempty"`
	Result *CallResult `json:"result,omitempty"`
	// Opaque is a JSON object that only the provider understands, such as signed thinking. It is sent back unchanged.
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// Call is a tool call of the model. Its ID is unique in the conversation.
type Call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a JSON object
	// Broken holds the original arguments, up to maxBroken bytes, if they are not a JSON object; Arguments is then {}.
	Broken string `json:"broken,omitempty"`
}

// CallResult answers the call with the same ID.
type CallResult struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	IsError bool   `json:"isError,omitempty"`
}

package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// dialect is the API of a provider. Its methods are pure and safe for concurrent use.
type dialect interface {
	// name returns the value of Request.API.
	name() string
	// key returns the API key of a request, or "".
	key(http.Header) string
	// read parses the body of a request. Its error is returned to the client.
	read(body []byte) (wireRequest, error)
	// stream returns the events of a streamed reply. The last one ends the reply.
	stream(turn) []event
	// message returns the body of a reply without streaming.
	message(turn) []byte
	// failure returns the body of an error.
	failure(status int, message string) []byte
	// failureEvent returns the event for an error in the middle of a stream.
	failureEvent() event
	// overloaded returns the status with which the provider sheds load.
	overloaded() int
	// requestIDHeader returns the name of the header that holds the ID of a request.
	requestIDHeader() string
}

// wireRequest is the parsed body of a request.
type wireRequest struct {
	conversation Conversation
	isStream     bool
	withUsage    bool
}

// event is one server-sent event.
type event struct {
	name    string // empty in Chat Completions
	data    []byte
	isChunk bool // the event carries a piece of the text or of arguments
}

// object is a JSON object.
type object = map[string]any

// encode returns the JSON of a value that consists of JSON types.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the values consist of maps, strings and numbers
	}
	return text
}

// part is an element of the content of a message, in either API.
type part struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   content         `json:"content"`
	IsError   bool            `json:"is_error"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
}

// content is the content of a message: a string, or a list of parts.
type content []part

// UnmarshalJSON accepts a string as a single part.
func (c *content) UnmarshalJSON(text []byte) error {
	switch {
	case string(text) == "null":
		return nil
	case len(text) > 0 && text[0] == '"':
		*c = content{{Type: "text"}}
		return json.Unmarshal(text, &(*c)[0].Text)
	}
	var parts []part
	if err := json.Unmarshal(text, &parts); err != nil {
		return fmt.Errorf("content must be a text or a list of parts: %w", err)
	}
	*c = parts
	return nil
}

// text returns the texts of all parts, joined by line feeds.
func (c content) text() string {
	joined := ""
	for _, p := range c {
		if p.Type == "text" {
			joined = joinLines(joined, p.Text)
		}
	}
	return joined
}

// joinLines joins two texts with a line feed unless one is empty.
func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

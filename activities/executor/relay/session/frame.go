package session

// request is the single message that a relay sends.
type request struct {
	Prompt string `json:"prompt"`
	// Await requests the lines of the turn.
	Await bool `json:"await"`
}

// frame is one message to a relay, with one field set, or Line and Cut.
type frame struct {
	// Queued is the number of turns that are ahead.
	Queued int `json:"queued,omitempty"`
	// Accepted reports that the program has read the message.
	Accepted bool `json:"accepted,omitempty"`
	// Line is a line of the turn without its last Cut bytes.
	Line *string `json:"line,omitempty"`
	Cut  int64   `json:"cut,omitempty"`
	// Done reports that the turn has ended.
	Done bool `json:"done,omitempty"`
	// Error is why no more frames follow.
	Error string `json:"error,omitempty"`
}

// userMessage is the line that gives the program a prompt.
type userMessage struct {
	Type    string `json:"type"`
	Message struct {
		Role    string      `json:"role"`
		Content []textBlock `json:"content"`
	} `json:"message"`
	SessionID string `json:"session_id"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func newUserMessage(id, prompt string) userMessage {
	m := userMessage{Type: "user", SessionID: id}
	m.Message.Role = "user"
	m.Message.Content = []textBlock{{"text", prompt}}
	return m
}

// controlRequest is the line that interrupts the program.
type controlRequest struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
}

func newInterrupt(requestID string) controlRequest {
	c := controlRequest{Type: "control_request", RequestID: requestID}
	c.Request.Subtype = "interrupt"
	return c
}

package scriptedmodel

import (
	"encoding/json"
	"net/http"
	"slices"
)

// Request is the record of a received request. Its slices are shared and must not be modified.
type Request struct {
	Number       int    // starts at 1, in order of arrival
	API          string // APIMessages or APIChatCompletions
	IsStream     bool
	Conversation Conversation    // the parsed part of the body
	Body         json.RawMessage // unparsed
	Header       http.Header     // with keys masked
	IsKeyRight   bool            // always true if the script has no key
	Rule         string          // the rule that matched, or "" if none did
	Status       int             // status of the response; 0 while the outcome is open and no byte was sent
	Outcome      Outcome
}

// The APIs of requests.
const (
	APIMessages        = "messages"
	APIChatCompletions = "chat-completions"
)

// Outcome is the state of the reply to a request.
type Outcome string

// The outcomes. All but OutcomeOpen are final, except that OutcomeDelivered becomes OutcomeAbandoned if sending the
// last bytes fails. OutcomeRefused and OutcomeDelivered are recorded before the last byte is sent, so a client with the
// complete response finds them.
const (
	OutcomeOpen      Outcome = "open"      // the reply is in progress
	OutcomeDelivered Outcome = "delivered" // the complete reply was sent
	OutcomeRefused   Outcome = "refused"   // the response has an error status
	OutcomeBroken    Outcome = "broken"    // the script broke the reply
	OutcomeAbandoned Outcome = "abandoned" // the client disconnected before the reply was complete
)

// masked replaces header values that contain keys.
const masked = "***"

// maskKeys returns a copy of a header without keys.
func maskKeys(header http.Header) http.Header {
	header = header.Clone()
	for _, name := range []string{"Authorization", "X-Api-Key"} {
		if header.Get(name) != "" {
			header.Set(name, masked)
		}
	}
	return header
}

// Requests returns all requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Open returns the number of requests in progress. It is 0 as soon as all handlers have returned.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Delivered returns the number of completely delivered replies.
func (s *Server) Delivered() int { return s.countDelivered(func(string) bool { return true }) }

// Repeated returns the number of replies that were delivered completely to a conversation that already had a complete
// reply: turns that a client paid for twice. Conversations that begin identically, such as those of parallel agents
// with the same prompt, count as one.
func (s *Server) Repeated() int {
	seen := map[string]bool{}
	return s.countDelivered(func(id string) bool {
		before := seen[id]
		seen[id] = true
		return before
	})
}

// countDelivered counts the completely delivered replies to conversations for which counts returns true.
func (s *Server) countDelivered(counts func(conversationID string) bool) int {
	n := 0
	for _, request := range s.Requests() {
		if request.Outcome == OutcomeDelivered && counts(conversationID(request.Conversation)) {
			n++
		}
	}
	return n
}

// begin records a request and returns its number.
func (s *Server) begin(request Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	request.Number = len(s.requests) + 1
	request.Outcome = OutcomeOpen
	s.requests = append(s.requests, request)
	s.open++
	return request.Number
}

// update changes the record of a request.
func (s *Server) update(number int, change func(*Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.requests[number-1])
}

// end records that the handler of a request returns.
func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

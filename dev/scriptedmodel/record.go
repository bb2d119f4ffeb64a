package scriptedmodel

import (
	"encoding/json"
	"net/http"
	"slices"
)

// Request is the record of a request that the server received. Its slices are shared; do not change them.
type Request struct {
	Number       int    // from 1, in the order of arrival
	API          string // APIMessages or APIChatCompletions
	IsStream     bool
	Conversation Conversation    // the parsed part of the body
	Body         json.RawMessage // unparsed
	Header       http.Header     // masked in place of keys
	IsKeyRight   bool            // always true if the script has no key
	Rule         string          // the rule that matched, or "" if none did
	Status       int             // of the response; 0 while the outcome is open and no byte was sent
	Outcome      Outcome
}

// The APIs of requests.
const (
	APIMessages        = "messages"
	APIChatCompletions = "chat-completions"
)

// Outcome is the state of the reply to a request.
type Outcome string

// Outcomes. All but OutcomeOpen are final, except that OutcomeDelivered becomes OutcomeAbandoned if sending the last
// bytes fails. Both OutcomeRefused and OutcomeDelivered are recorded before the last byte is sent, so a client that has the
// whole response finds them.
const (
	OutcomeOpen      Outcome = "open"      // the reply is on its way
	OutcomeDelivered Outcome = "delivered" // the reply was sent whole
	OutcomeRefused   Outcome = "refused"   // the response has the status of an error
	OutcomeBroken    Outcome = "broken"    // the script broke the reply
	OutcomeAbandoned Outcome = "abandoned" // the client left before the reply was whole
)

// masked replaces the values of headers that carry keys.
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

// Requests returns all requests so far, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Open returns how many requests are being answered. It is 0 as soon as all handlers have returned.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Delivered returns how many replies were delivered whole.
func (s *Server) Delivered() int { return s.countDelivered(func(string) bool { return true }) }

// Repeated returns how many replies were delivered whole to a conversation that had been answered whole before: the turns
// that a client paid for twice. Conversations that begin alike, such as those of parallel agents with the same prompt,
// count as one.
func (s *Server) Repeated() int {
	seen := map[string]bool{}
	return s.countDelivered(func(id string) bool {
		before := seen[id]
		seen[id] = true
		return before
	})
}

// countDelivered counts the whole replies for whose conversations a function returns true.
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

// end notes that the handler of a request returns.
func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

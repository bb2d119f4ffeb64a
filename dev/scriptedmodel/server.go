package scriptedmodel

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// maxBody bounds the body of a request, in bytes, as the Messages API does.
const maxBody = 32 << 20

// Server answers requests according to its script. It starts no goroutine, and a handler ends when its client
// disconnects. It is safe for concurrent use.
type Server struct {
	script Script
	mux    *http.ServeMux

	mu       sync.Mutex
	requests []Request
	faults   []int // number of requests that each rule has failed
	open     int
}

// New returns a server for a script. It panics if the script is invalid; call Script.Validate first if the script
// comes from a user.
func New(script Script) *Server {
	if err := script.Validate(); err != nil {
		panic(fmt.Sprintf("scriptedmodel: invalid script: %v", err))
	}
	s := &Server{script: script, mux: http.NewServeMux(), faults: make([]int, len(script.Rules))}
	s.mux.Handle("POST /v1/messages", s.handler(anthropic{}))
	s.mux.Handle("POST /v1/chat/completions", s.handler(openAI{}))
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		text := fmt.Sprintf("no model answers %s %s; use POST /v1/messages or POST /v1/chat/completions", r.Method, r.URL.Path)
		http.Error(w, text, http.StatusNotFound)
	})
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// handler returns the handler for the path of a dialect.
func (s *Server) handler(d dialect) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, bodyErr := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		wire, wireErr := d.read(body)
		isKeyRight := s.script.Key == "" || subtle.ConstantTimeCompare([]byte(d.key(r.Header)), []byte(s.script.Key)) == 1
		number := s.begin(Request{
			API: d.name(), IsStream: wire.isStream, Conversation: wire.conversation, Body: body,
			Header: maskKeys(r.Header), IsKeyRight: isKeyRight,
		})
		defer s.end()
		w.Header().Set(d.requestIDHeader(), fmt.Sprintf("req_%d", number))
		out := &delivery{w: w, ctx: r.Context(), dialect: d, record: func(status int, outcome Outcome) {
			s.update(number, func(r *Request) { r.Status, r.Outcome = status, outcome })
		}}

		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(bodyErr, &tooLarge):
			out.refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", maxBody), 0)
			return
		case !isKeyRight:
			out.refuse(http.StatusUnauthorized, "the API key is missing or wrong", 0)
			return
		case bodyErr != nil:
			out.refuse(http.StatusBadRequest, fmt.Sprintf("read the request: %v", bodyErr), 0)
			return
		case wireErr != nil:
			out.refuse(http.StatusBadRequest, wireErr.Error(), 0)
			return
		}
		rule, fault := s.choose(number, wire.conversation)
		if rule == nil {
			out.refuse(http.StatusBadRequest, noRule(wire.conversation), 0)
			return
		}
		out.pace = rule.Pace
		if fault.Pace != nil {
			out.pace = *fault.Pace
		}
		reply := newTurn(rule.Reply, out.pace, wire.conversation)
		reply.withUsage = wire.withUsage
		out.send(reply, fault, wire.isStream)
	})
}

// choose returns the rule for a conversation and its fault. The rule is nil if none matches. The fault is zero if the
// rule answers normally this time.
func (s *Server) choose(number int, c Conversation) (*Rule, Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, rule := range s.script.Rules {
		if !rule.When.matches(c) {
			continue
		}
		name := rule.Name
		if name == "" {
			name = fmt.Sprintf("rules[%d]", i)
		}
		s.requests[number-1].Rule = name
		if rule.Fault == nil || rule.Fault.Times > 0 && s.faults[i] >= rule.Fault.Times {
			return &rule, Fault{}
		}
		s.faults[i]++
		return &rule, *rule.Fault
	}
	return nil, Fault{}
}

// noRule returns the error text for a conversation that no rule matches.
func noRule(c Conversation) string {
	var results []string
	for _, result := range c.NewToolResults() {
		results = append(results, result.Name)
	}
	return fmt.Sprintf("no rule of the script matches the request: model %q, last user message %.200q, turns %d, new tool results %q, system prompt %.200q",
		c.Model, c.LastUserText(), c.Turns(), results, c.System)
}

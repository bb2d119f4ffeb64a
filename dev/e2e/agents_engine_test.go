//go:build engines

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"switchyard/dev/scriptedmodel"
)

// heldModel is a scripted model that holds back its replies to some requests. It notices a client that disconnects
// meanwhile.
type heldModel struct {
	*scriptedmodel.Server
	url string
	// words is the text that marks a conversation whose requests are held.
	words string

	mu      sync.Mutex
	held    int
	release chan struct{}
}

// startHeldModel starts a model that holds requests with certain words until letGo is called.
func startHeldModel(t *testing.T, words string, script scriptedmodel.Script) *heldModel {
	t.Helper()
	m := &heldModel{Server: scriptedmodel.New(script), words: words, release: make(chan struct{})}
	server := httptest.NewServer(m)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	m.url = server.URL
	return m
}

// ServeHTTP answers a request. It first holds it if the conversation contains the words.
func (m *heldModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte(m.words)) {
		m.mu.Lock()
		m.held++
		release := m.release
		m.mu.Unlock()
		defer func() {
			m.mu.Lock()
			m.held--
			m.mu.Unlock()
		}()
		w = &heldResponse{ResponseWriter: w, request: r, release: release}
	}
	m.Server.ServeHTTP(w, r)
}

// heldResponse holds back the first byte of a response.
type heldResponse struct {
	http.ResponseWriter
	request *http.Request
	release chan struct{}
}

func (h *heldResponse) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *heldResponse) WriteHeader(status int) {
	select {
	case <-h.release:
	case <-h.request.Context().Done():
	}
	h.ResponseWriter.WriteHeader(status)
}

// heldNow returns the number of held requests.
func (m *heldModel) heldNow() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// letGo releases all held requests; later ones are held again.
func (m *heldModel) letGo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.release)
	m.release = make(chan struct{})
}

// askedTwice returns the conversation states that were requested more than once, with the outcomes of their requests.
// It ignores requests whose client disconnected before the reply.
func askedTwice(m *scriptedmodel.Server) []string {
	outcomes := map[string][]scriptedmodel.Outcome{}
	var order []string
	for _, request := range m.Requests() {
		c := request.Conversation
		state := fmt.Sprintf("%q with %d messages", c.Messages[0].Text, len(c.Messages))
		if len(outcomes[state]) == 0 {
			order = append(order, state)
		}
		outcomes[state] = append(outcomes[state], request.Outcome)
	}
	var twice []string
	for _, state := range order {
		all := outcomes[state]
		if last := len(all) - 1; slices.ContainsFunc(all[:last], func(o scriptedmodel.Outcome) bool { return o != scriptedmodel.OutcomeAbandoned }) {
			twice = append(twice, fmt.Sprintf("%s: %v", state, all))
		}
	}
	return twice
}

// agentTurns matches conversations with n replies.
func agentTurns(n int, user string) scriptedmodel.When {
	return scriptedmodel.When{Turns: &n, User: user}
}

// agentCalls returns a reply that calls a tool.
func agentCalls(tool, arguments string) scriptedmodel.Reply {
	return scriptedmodel.Reply{
		Text:      "I call " + tool + ".",
		ToolCalls: []scriptedmodel.ToolCall{{Name: tool, Arguments: scriptedmodel.Arguments(arguments)}},
	}
}

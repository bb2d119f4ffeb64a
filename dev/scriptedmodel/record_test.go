package scriptedmodel

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// post sends a body without a client library. It reads and closes the body of the response.
func post(t *testing.T, server *httptest.Server, path, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(bounded(t), http.MethodPost, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	response.Body = io.NopCloser(strings.NewReader(string(text)))
	return response
}

func TestKeyIsChecked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want, sent string
		isRight          bool
	}{
		{"right key", testKey, testKey, true},
		{"wrong key", testKey, "sk-other", false},
		{"any key is right without one in the script", "", "sk-other", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachClient(t, func(t *testing.T, c client) {
				model, server := start(t, Script{Key: test.want, Rules: []Rule{{Reply: Reply{Text: "Welcome."}}}})
				ask := caller{url: server.URL, http: server.Client(), key: test.sent, retries: 2}
				_, err := c.ask(bounded(t), ask, says("open"))
				if test.isRight && err != nil || !test.isRight && statusOf(err) != http.StatusUnauthorized {
					t.Errorf("error %v", err)
				}
				requests := model.Requests()
				if len(requests) != 1 || requests[0].IsKeyRight != test.isRight {
					t.Fatalf("recorded %+v", requests)
				}
				for name, values := range requests[0].Header {
					if strings.Contains(strings.Join(values, " "), test.sent) {
						t.Errorf("the header %s shows the key", name)
					}
				}
				if requests[0].Header.Get("User-Agent") == "" {
					t.Error("the record lacks other headers")
				}
			})
		})
	}
}

func TestMissingKeyIsRefused(t *testing.T) {
	t.Parallel()
	_, server := start(t, Script{Key: testKey, Rules: []Rule{{Reply: Reply{Text: "Welcome."}}}})
	for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
		response := post(t, server, path, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`)
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: status %d", path, response.StatusCode)
		}
	}
}

func TestRecordsHoldWhatWasAsked(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		model, server := start(t, Script{Rules: []Rule{{Name: "greeting", Reply: Reply{Text: "Hello."}}}})
		if _, err := c.ask(bounded(t), caller{url: server.URL, http: server.Client(), key: testKey}, says("Good morning")); err != nil {
			t.Fatal(err)
		}
		got := model.Requests()[0]
		if got.Number != 1 || got.API != c.api || got.IsStream != c.isStream || got.Rule != "greeting" ||
			got.Status != http.StatusOK || got.Outcome != OutcomeDelivered || got.Conversation.Model != "test-model" ||
			got.Conversation.LastUserText() != "Good morning" || !strings.Contains(string(got.Body), "Good morning") {
			t.Errorf("recorded %+v", got)
		}
	})
}

func TestServerAnswersManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	const each = 10
	model, server := start(t, Script{Rules: []Rule{{Reply: Reply{Text: "One of many replies."}, Fault: &Fault{Times: 5, Status: 500}}}})
	var group sync.WaitGroup
	for _, c := range clients {
		for range each {
			group.Go(func() {
				_, err := c.ask(t.Context(), caller{url: server.URL, http: server.Client(), key: testKey}, says("go"))
				if err != nil && statusOf(err) != http.StatusInternalServerError {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	waitUntil(t, "no handler is left", func() bool { return model.Open() == 0 })
	total := each * len(clients)
	if len(model.Requests()) != total || model.Delivered() != total-5 || model.Repeated() != total-6 {
		t.Errorf("%d requests, %d delivered, %d again", len(model.Requests()), model.Delivered(), model.Repeated())
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	t.Parallel()
	const messages, completions = "/v1/messages", "/v1/chat/completions"
	for _, test := range []struct {
		name, path, body string
		status           int
		text             string
	}{
		{"no JSON", messages, `{`, 400, "not valid JSON"},
		{"no JSON", completions, `{`, 400, "not valid JSON"},
		{"no max_tokens", messages, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, 400, "max_tokens"},
		{"no model", completions, `{"messages":[{"role":"user","content":"hi"}]}`, 400, "model"},
		{"no messages", completions, `{"model":"m","messages":[]}`, 400, "at least one message"},
		{"role", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"robot","content":"hi"}]}`, 400, "role"},
		{"role", completions, `{"model":"m","messages":[{"role":"robot","content":"hi"}]}`, 400, "role"},
		{"call without result", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"},
			{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"now","input":{}}]},{"role":"user","content":"well?"}]}`, 400, "c1"},
		{"call without result", completions, `{"model":"m","messages":[{"role":"user","content":"hi"},
			{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"now","arguments":"{}"}},{"id":"c2","function":{"name":"now","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"noon"}]}`, 400, "c2"},
		{"result without call", completions, `{"model":"m","messages":[{"role":"tool","tool_call_id":"c9","content":"noon"}]}`, 400, "c9"},
		{"arguments that are no object", messages, `{"model":"m","max_tokens":1,"messages":[
			{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"now","input":"{"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"noon"}]}]}`, 400, "should be an object"},
		{"no rule", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"other"}]}`, 400, "no rule of the script matches"},
		{"other path", "/v1/responses", `{}`, 404, "POST /v1/messages"},
	} {
		t.Run(test.name+strings.ReplaceAll(test.path, "/", " "), func(t *testing.T) {
			t.Parallel()
			_, server := start(t, Script{Rules: []Rule{{When: When{User: "hi"}, Reply: Reply{Text: "Hello."}}}})
			response := post(t, server, test.path, test.body)
			text, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.status || !strings.Contains(string(text), test.text) {
				t.Errorf("status %d: %s", response.StatusCode, text)
			}
		})
	}
}

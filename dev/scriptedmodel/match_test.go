package scriptedmodel

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRulesMatchModelsAndTextsOfResults(t *testing.T) {
	t.Parallel()
	script := Script{Rules: []Rule{
		{When: When{ToolResult: "now", ToolResultText: "rain"}, Reply: Reply{Text: "no such result"}},
		{When: When{ToolResultText: "noon"}, Reply: Reply{Text: "text"}},
		{When: When{ToolResult: "forecast", ToolResultText: "rain"}, Reply: Reply{Text: "tool and text"}},
		{When: When{Model: "small"}, Reply: Reply{Text: "model"}},
		{Reply: Reply{Text: "default"}},
	}}
	eachClient(t, func(t *testing.T, c client) {
		_, server := start(t, script)
		for _, test := range []struct{ model, forecast, now, want string }{
			{"large", "heavy rain", "11:59", "tool and text"},
			{"large", "heavy rain", "noon", "text"},
			{"small", "sun", "rain?", "no such result"},
			{"small", "sun", "11:59", "model"},
			{"smaller", "sun", "11:59", "default"},
		} {
			conversation := says("weather")
			conversation.Model = test.model
			conversation.Messages = append(conversation.Messages,
				Message{Role: RoleAssistant, ToolCalls: []ToolCall{{"c1", "forecast", "{}"}, {"c2", "now", "{}"}}},
				Message{Role: RoleTool, ToolResults: []ToolResult{{ID: "c1", Text: test.forecast}, {ID: "c2", Text: test.now}}},
			)
			got, err := c.ask(bounded(t), caller{url: server.URL, http: server.Client(), key: testKey}, conversation)
			if err != nil || got.Text != test.want {
				t.Errorf("%+v: %+v, %v", test, got, err)
			}
		}
	})
}

func TestThinkingMustReturnWithItsSignature(t *testing.T) {
	t.Parallel()
	model, server := start(t, Script{Rules: []Rule{{Reply: Reply{Thinking: "Hm, 1 < 2.", Text: "Yes."}}}})
	const ask = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}`
	response := post(t, server, "/v1/messages", ask+`]}`)
	var reply struct{ Content []json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil || len(reply.Content) != 2 {
		t.Fatalf("content %s, error %v", reply.Content, err)
	}
	for _, test := range []struct {
		block  string
		status int
	}{
		{string(reply.Content[0]), http.StatusOK},
		{strings.Replace(string(reply.Content[0]), "Hm", "Ha", 1), http.StatusBadRequest},
		{`{"type":"thinking","thinking":"Hm, 1 < 2."}`, http.StatusBadRequest},
	} {
		body := ask + `,{"role":"assistant","content":[` + test.block + `]},{"role":"user","content":"well?"}]}`
		response := post(t, server, "/v1/messages", body)
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode != test.status || test.status != http.StatusOK && !strings.Contains(string(text), "Invalid signature") {
			t.Errorf("%s: status %d: %s", test.block, response.StatusCode, text)
		}
	}
	if got := model.Requests()[1].Conversation.Messages[1]; got.Thinking != "Hm, 1 < 2." || got.Text != "" {
		t.Errorf("recorded %+v", got)
	}
}

package scriptedmodel

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const everything = `
key: secret
rules:
  - name: ask
    when: { user: weather, system: you are, model: small, toolResult: now, toolResultText: noon, turns: 0 }
    reply:
      thinking: Which tool?
      text: Let me see.
      toolCalls:
        - { name: forecast, arguments: { city: Oslo, days: [1, 2] } }
        - { id: c2, name: broken, arguments: '{"city": ' }
        - name: now
      usage: { input: 10, output: 5, cacheRead: 3, cacheWrite: 2 }
      stopReason: max_tokens
    pace: { delay: 1s, chunkDelay: 20ms, chunkSize: 3 }
    fault: { times: 2, status: 429, retryAfter: 1500ms }
  - when: { user: cut }
    fault: { break: cut, after: 2, pace: { chunkDelay: 1ms } }
  - reply: { text: "Default" }
`

func TestScriptsAreRead(t *testing.T) {
	t.Parallel()
	want := Script{Key: "secret", Rules: []Rule{
		{
			Name: "ask", When: When{User: "weather", System: "you are", Model: "small", ToolResult: "now", ToolResultText: "noon", Turns: new(0)},
			Reply: Reply{
				Thinking: "Which tool?", Text: "Let me see.", Usage: &Usage{10, 5, 3, 2}, StopReason: StopMaxTokens,
				ToolCalls: []ToolCall{{"", "forecast", `{"city":"Oslo","days":[1,2]}`}, {"c2", "broken", `{"city": `}, {"", "now", ""}},
			},
			Pace:  Pace{time.Second, 20 * time.Millisecond, 3},
			Fault: &Fault{Times: 2, Status: 429, RetryAfter: 1500 * time.Millisecond},
		},
		{When: When{User: "cut"}, Fault: &Fault{Break: BreakCut, After: 2, Pace: &Pace{ChunkDelay: time.Millisecond}}},
		{Reply: Reply{Text: "Default"}},
	}}
	got, err := Parse([]byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	fromJSON, err := Parse([]byte(`{"rules": [{"reply": {"text": "Default"}, "pace": {"delay": "1s"}}]}`))
	if err != nil || fromJSON.Rules[0].Pace.Delay != time.Second {
		t.Errorf("from JSON: %+v, %v", fromJSON, err)
	}
}

func TestInvalidScriptsAreExplained(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ script, want string }{
		{``, "the script is empty"},
		{`rules: []`, "rules: the script has none"},
		{"rules:\n  - reply: { txt: Hello }", "line 2: unknown field txt"},
		{"rules: [{ pace: { delay: soon } }]", "line 1: cannot unmarshal"},
		{"rules: [{ reply: { toolCalls: [{ name: now, arguments: [1] }] } }]", "line 1: arguments must be a mapping or a text"},
		{"rules: [{ reply: { text: a } }]\n---\nrules: []", "more than one document"},
		{"rules: [{}, { when: { user: a } }]", "rules[0].when: missing"},
		{"rules: [{ reply: { toolCalls: [{ arguments: {} }] } }]", "rules[0].reply.toolCalls[0].name: missing"},
		{"rules: [{ when: { turns: -1 } }]", "rules[0].when.turns"},
		{"rules: [{ reply: { usage: { input: -1 } } }]", "rules[0].reply.usage"},
		{"rules: [{ pace: { delay: -1s } }]", "rules[0].pace"},
		{"rules: [{ fault: { times: 1 } }]", "rules[0].fault: needs status, break or pace"},
		{"rules: [{ fault: { status: 500, break: cut } }]", "rules[0].fault: status and break are mutually exclusive"},
		{"rules: [{ fault: { status: 200 } }]", "rules[0].fault.status: 200 is no status of an error"},
		{"rules: [{ fault: { break: snap } }]", `rules[0].fault.break: "snap" is unknown; use one of [cut truncate`},
		{"rules: [{ fault: { break: endless } }]", "rules[0].fault.break: endless needs reply.text"},
		{"rules: [{ fault: { break: cut, retryAfter: 1s } }]", "rules[0].fault.retryAfter: needs fault.status"},
		{"rules: [{ fault: { status: 500, after: 1 } }]", "rules[0].fault.after: needs fault.break"},
		{"rules: [{ fault: { pace: { chunkSize: -1 } } }]", "rules[0].fault.pace"},
		{"rules: [{ fault: { break: cut, after: -1 } }]", "rules[0].fault: times, after and retryAfter"},
	} {
		if _, err := Parse([]byte(test.script)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\ngot  %v\nwant %s", test.script, err, test.want)
		}
	}
}

func TestScriptOfThePackageCommentIsValid(t *testing.T) {
	t.Parallel()
	text := packageExample(t)
	script, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(script.Rules) != 3 {
		t.Errorf("%d rules", len(script.Rules))
	}
}

// packageExample returns the script in the package comment.
func packageExample(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(doc)) {
		if code, isCode := strings.CutPrefix(line, "//\t"); isCode {
			lines = append(lines, code)
		}
	}
	return strings.Join(lines, "")
}

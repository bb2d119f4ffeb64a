package session

import (
	"strings"
	"testing"
)

func TestClaudeCommandGetsStreamingFlags(t *testing.T) {
	const stream = " --input-format stream-json --output-format stream-json --verbose"
	for command, test := range map[string]struct{ name, want, id string }{
		"claude":                        {"s-1", "claude -p" + stream, "s-1"},
		"/opt/bin/claude --model big":   {"", "/opt/bin/claude --model big -p" + stream + " --session-id ID", "ID"},
		"claude --print --resume other": {"", "claude --print --resume other" + stream, ""},
		"claude -p --verbose --session-id x --input-format stream-json": {"", "claude -p --verbose --session-id x --input-format stream-json --output-format stream-json", ""},
		"my-agent --verbose": {"", "my-agent --verbose", ""},
	} {
		got, id := claudeCommand(strings.Fields(command), test.name)
		line := strings.Join(got, " ")
		if test.id == "ID" {
			line, test.id = strings.Replace(line, id, "ID", 1), id
		}
		if line != test.want || id != test.id || test.want != "my-agent --verbose" && id == "" && strings.Contains(test.want, "ID") {
			t.Errorf("%s: %q with id %q, want %q", command, line, id, test.want)
		}
	}
}

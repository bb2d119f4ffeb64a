package cli

import (
	"strings"
	"testing"

	"switchyard/cli/exit"
)

// opening holds the first lines that an agent program sends.
const opening = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// TestMCPEndsWithItsAgentProgram checks that `switchyard mcp` succeeds when its input ends, and fails with the reason
// when the input is another protocol.
func TestMCPEndsWithItsAgentProgram(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]struct {
		code   int
		stderr string
	}{
		"":            {0, ""},
		opening:       {0, ""},
		"runs list\n": {exit.CodeUsage, "standard input is not in the Model Context Protocol"},
	} {
		got := runWith(t, nil, input, "mcp", "--gateway", "http://127.0.0.1:1")
		if got.code != want.code || !strings.Contains(got.stderr, want.stderr) || want.stderr == "" && got.stderr != "" {
			t.Errorf("%q: exit code %d: %s", input, got.code, got.stderr)
		}
	}
}

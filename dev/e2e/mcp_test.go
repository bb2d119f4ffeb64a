package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// TestAgentProgramNeedsNoGatewayToStart speaks an older revision of the protocol to `switchyard mcp`, line by line, as
// an agent program does.
func TestAgentProgramNeedsNoGatewayToStart(t *testing.T) {
	t.Parallel()
	const gateway = "http://127.0.0.1:1"
	requests := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_workflows","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"validate_definition","arguments":{"definition":"name: x\ntasks: { a: { type: shell, spec: { command: 'true' } } }"}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"switchyard://guide"}}`,
	}
	cmd := exec.CommandContext(t.Context(), binary, "mcp", "--gateway", gateway)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte(strings.Join(requests, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	answers := map[int]string{}
	for decoder := json.NewDecoder(out); len(answers) < 5; {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := decoder.Decode(&answer); err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		answers[answer.ID] = string(answer.Result) + string(answer.Error)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v when the agent program leaves: %s", err, stderr.String())
	}
	for id, want := range map[int]string{
		1: `"protocolVersion":"2024-11-05"`, 2: `"name":"submit_task"`, 3: "the gateway at " + gateway + " cannot be reached", 4: `\"valid\":true`, 5: "# The language of definitions",
	} {
		if !strings.Contains(answers[id], want) {
			t.Errorf("the answer to %s lacks %q: %.500s", requests[id-1], want, answers[id])
		}
	}
}

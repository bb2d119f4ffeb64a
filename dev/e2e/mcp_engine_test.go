//go:build engines

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"switchyard/dev/testneeds"
)

// TestLongAgentsDriveRuns takes a run through failure, dead letter, retry and drain with third-party clients of the
// Model Context Protocol, over HTTP and as programs that start `switchyard mcp`.
func TestLongAgentsDriveRuns(t *testing.T) {
	testneeds.Long(t)
	s := startDev(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "mcp"))); err != nil {
		t.Fatal(err)
	}
	if out, err := outputOf(t, tool(t, "npm"), "--prefix", dir, "install", "--no-audit", "--no-fund", "--no-package-lock"); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	node := tool(t, "node")
	clients := []string{"@modelcontextprotocol/sdk"}
	if major := nodeMajor(t, node); major >= 20 {
		clients = append(clients, "@modelcontextprotocol/client") // requires Node.js 20
	}
	for _, client := range clients {
		for _, transport := range []string{"http", "stdio"} {
			if out, err := outputOf(t, node, filepath.Join(dir, "agent.mjs"), client, transport, s.Gateway, binary); err != nil {
				t.Errorf("%s over %s: %v\n%s", client, transport, err, out)
			}
		}
	}
}

// nodeMajor returns the major version of Node.js.
func nodeMajor(t *testing.T, node string) int {
	t.Helper()
	out, err := outputOf(t, node, "--version")
	if err != nil {
		t.Fatal(err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(out), "v"), ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		t.Fatalf("node --version: %q", out)
	}
	return n
}

//go:build engines

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"switchyard/dev/testneeds"
)

// TestLongOtherAgentsDriveRuns takes runs through success, approval, failure and cancellation with a third-party client
// of the Agent2Agent protocol, over each binding of the agent card.
func TestLongOtherAgentsDriveRuns(t *testing.T) {
	testneeds.Long(t)
	node := tool(t, "node")
	if major := nodeMajor(t, node); major < 20 {
		t.Skipf("@a2a-js/sdk asks for Node.js 20, and this is %d", major)
	}
	s := startDev(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "a2a"))); err != nil {
		t.Fatal(err)
	}
	if out, err := outputOf(t, tool(t, "npm"), "--prefix", dir, "install", "--no-audit", "--no-fund", "--no-package-lock"); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	for _, skill := range []string{filepath.Join(repository, "dev", "examples", "a2a-greeting.yaml"), filepath.Join(dir, "release.yaml")} {
		if code, _, stderr := run(t, "workflows", "put", skill, "--gateway", s.Gateway); code != 0 {
			t.Fatalf("workflows put %s exits with %d: %s", skill, code, stderr)
		}
	}
	for _, binding := range []string{"JSONRPC", "HTTP+JSON"} {
		t.Run(binding, func(t *testing.T) {
			t.Parallel()
			if out, err := outputOf(t, node, filepath.Join(dir, "agent.mjs"), binding, s.Gateway); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

//go:build engines

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// TestForeignClientsDriveRuns takes runs through their lives with curl and grpcurl, and runs the commands in the
// documents about REST.
func TestForeignClientsDriveRuns(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	t.Run("curl", func(t *testing.T) {
		out, err := outputOf(t, tool(t, "bash"), filepath.Join("testdata", "curl.sh"), s.Gateway)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	t.Run("grpcurl", func(t *testing.T) {
		out, err := outputOf(t, tool(t, "bash"), filepath.Join("testdata", "grpcurl.sh"), tool(t, "grpcurl"), strings.TrimPrefix(s.Gateway, "http://"))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	t.Run("documents", func(t *testing.T) {
		for document, head := range map[string]string{"README.md": "\n## REST\n", "docs/rest.md": "# The HTTP API\n"} {
			text, err := os.ReadFile(filepath.Join(repository, document))
			if err != nil {
				t.Fatal(err)
			}
			block := regexp.MustCompile("(?s)" + head + ".*?```sh\n(.*?)```").FindSubmatch(text)
			if block == nil {
				t.Fatalf("%s has no commands after %q", document, head)
			}
			// The script ends at the first 4xx or 5xx status.
			script := "set -e\ncd " + repository + "\nSWITCHYARD_GATEWAY=" + s.Gateway + "\n" +
				"curl() { command curl -sS --fail-with-body --max-time 300 \"$@\"; }\n" +
				strings.ReplaceAll(string(block[1]), "http://127.0.0.1:7280", s.Gateway)
			if out, err := outputOf(t, tool(t, "bash"), "-c", script); err != nil {
				t.Errorf("%s: %v\n%s", document, err, processes.Tail(out))
			}
		}
	})
}

// TestLongGeneratedClientDrivesRuns generates a client from the OpenAPI document with openapi-typescript, type-checks a
// program that uses it with the TypeScript compiler, and runs that program.
func TestLongGeneratedClientDrivesRuns(t *testing.T) {
	testneeds.Long(t)
	npm := tool(t, "npm")
	s, dir := shared(t), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "client"))); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{npm, "--prefix", dir, "install", "--no-audit", "--no-fund", "--no-package-lock"},
		{npm, "--prefix", dir, "exec", "--", "openapi-typescript", s.Gateway + "/openapi.json", "-o", filepath.Join(dir, "schema.d.ts")},
		{npm, "--prefix", dir, "exec", "--", "tsc", "-p", dir},
		{tool(t, "node"), filepath.Join(dir, "client.js"), s.Gateway},
	} {
		out, err := outputOf(t, command[0], command[1:]...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
}

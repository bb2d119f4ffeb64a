//go:build engines

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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

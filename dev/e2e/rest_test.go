package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestForeignClientsDriveRuns has grpcurl take runs through their lives.
func TestForeignClientsDriveRuns(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	t.Run("grpcurl", func(t *testing.T) {
		out, err := outputOf(t, tool(t, "bash"), filepath.Join("testdata", "grpcurl.sh"), tool(t, "grpcurl"), strings.TrimPrefix(s.gateway, "http://"))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

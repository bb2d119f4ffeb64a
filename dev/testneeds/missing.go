package testneeds

import (
	"os"
	"testing"
)

// Missing ends a test that this machine cannot run: it skips the test, or fails it if CI is set.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("in CI, tests may not be skipped for this reason: "+format, args...)
	}
	t.Skipf(format, args...)
}

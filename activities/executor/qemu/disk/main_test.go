package disk

import (
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// wantError fails the test unless err contains a text. It reports whether the spec is at fault.
func wantError(t testing.TB, err error, text string) (isBadSpec bool) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one with %q", err, text)
	}
	start := executor.AsStartError(err)
	return start != nil && start.BadSpec
}

package submission

import (
	"testing"

	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

func TestIdempotencyKeysAreScopedToCallers(t *testing.T) {
	t.Parallel()
	if ann, bob := ScopedKey("ann", "k"), ScopedKey("bob", "k"); ann == bob || ann != ScopedKey("ann", "k") {
		t.Errorf("the keys are %q and %q", ann, bob)
	}
	if ScopedKey("ann", "") != "" || ScopedKey("", "k") != "k" || ScopedKey("ann"+auth.Unverified, "k") != ScopedKey("bob"+auth.Unverified, "k") {
		t.Error("a request without a key, or callers that nothing proves, have keys of their own")
	}
}

package testneeds

import (
	"os"
	"testing"
)

// longVariable is the environment variable that enables long tests.
const longVariable = "SWITCHYARD_LONG"

// Long skips a test unless SWITCHYARD_LONG is set. It is for soaks, exhaustive kills and large property tests. The name
// of such a test begins with TestLong, by which `dev/nightly.sh` finds it. Code that it shares with a regular
// test is a function that takes a size.
func Long(t testing.TB) {
	t.Helper()
	if !IsLong() {
		t.Skipf("this test takes long: run it with %s=1, or run all long tests with `dev/nightly.sh long`", longVariable)
	}
}

// IsLong reports whether SWITCHYARD_LONG is set. It is for packages in which every test becomes longer.
func IsLong() bool { return os.Getenv(longVariable) != "" }

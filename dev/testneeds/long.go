package testneeds

import (
	"os"
	"testing"
)

// longVariable is the environment variable that has long tests run.
const longVariable = "SWITCHYARD_LONG"

// Long skips a test unless SWITCHYARD_LONG is set. It is for soaks, exhaustive kills and wide properties. The name of
// such a test begins with TestLong, by which `task test:long` and CI find it; what it has in common with a test that
// everybody runs is a function with a size as its argument.
func Long(t testing.TB) {
	t.Helper()
	if !IsLong() {
		t.Skipf("it takes long: run it with %s=1, or all of its kind with `task test:long`", longVariable)
	}
}

// IsLong reports whether SWITCHYARD_LONG is set. It is for packages of which every test becomes longer.
func IsLong() bool { return os.Getenv(longVariable) != "" }

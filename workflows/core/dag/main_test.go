package dag_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMain sets the property tests to 1,000 cases each, or to 10,000 if tests may take long (fewer under the race detector),
// unless the command line sets a number.
func TestMain(m *testing.M) {
	flag.Parse()
	if !slices.ContainsFunc(os.Args, func(arg string) bool { return strings.Contains(arg, "rapid.checks") }) {
		if err := flag.Set("rapid.checks", cases); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

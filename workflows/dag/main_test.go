package dag_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMain has the property tests look at 1,000 cases each, or at 10,000 where tests may
// take long (fewer under the race detector), unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if !slices.ContainsFunc(os.Args, func(arg string) bool { return strings.Contains(arg, "rapid.checks") }) {
		if err := flag.Set("rapid.checks", cases); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

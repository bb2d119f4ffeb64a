package dag_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMain has the property tests look at 10,000 cases each (fewer under the race
// detector), the same ones each time, unless the command line says otherwise:
// `task fuzz` looks for other ones.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.checks": cases, "rapid.seed": "1"} {
		if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.Contains(arg, name) }) {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

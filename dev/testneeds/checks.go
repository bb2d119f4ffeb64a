package testneeds

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Checks sets how many cases the property tests of a test check, unless the command line does (-rapid.checks). It is
// for properties with slow cases, such as those that write files. The test must not be parallel.
func Checks(t testing.TB, n int) {
	t.Helper()
	const name = "rapid.checks"
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.Contains(arg, name) }) {
		return
	}
	before := flag.Lookup(name).Value.String()
	set := func(value string) {
		if err := flag.Set(name, value); err != nil {
			t.Error(err)
		}
	}
	set(strconv.Itoa(n))
	t.Cleanup(func() { set(before) })
}

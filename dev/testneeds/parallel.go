package testneeds

import (
	"flag"
	"strconv"
)

// Parallel sets how many tests of a package run concurrently, unless the command line does (-parallel). The default,
// the number of processors, is too low for tests that mostly wait. TestMain calls Parallel before it runs the tests.
func Parallel(n int) {
	const name = "test.parallel"
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	if err := flag.Set(name, strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

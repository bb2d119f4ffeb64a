//go:build race

package dag_test

// The race detector makes everything ten times as slow and has nothing to find in a package without goroutines, so it gets
// fewer cases.
const (
	cases = "500"
	many  = 10_000
)

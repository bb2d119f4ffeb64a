//go:build !race

package dag_test

const (
	cases = "10000" // of a property test
	many  = 100_000 // tasks of a large run
)

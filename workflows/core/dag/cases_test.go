//go:build !race

package dag_test

import "switchyard/dev/testneeds"

// cases is the number of cases per property test. many is the number of tasks in a large run.
var cases, many = sizes()

func sizes() (cases string, many int) {
	if testneeds.IsLong() {
		return "10000", 100_000
	}
	return "1000", 20_000
}

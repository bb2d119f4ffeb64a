//go:build engines

package e2e

import (
	"testing"

	"switchyard/dev/chaos/drill"
	"switchyard/dev/testneeds"
)

// TestLongFailure runs each scenario of dev/chaos once, with short time-outs. The full-length scenarios are run by
// hand.
func TestLongFailure(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	for _, scenario := range drill.Scenarios() {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			runDrill(t, scenario.Name)
		})
	}
}

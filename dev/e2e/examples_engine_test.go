//go:build engines

package e2e

import (
	"testing"

	"switchyard/activities/executor/container/enginetest"
)

// TestExamplesWithContainers runs the definitions in dev/examples that need containers.
func TestExamplesWithContainers(t *testing.T) {
	t.Parallel()
	testExamples(t, enginetest.Image(t))
}

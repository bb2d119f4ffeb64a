package orchestrator

import (
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(12)
	testneeds.NoLeaks(m)
}

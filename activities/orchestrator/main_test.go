package orchestrator

import (
	"testing"

	"go.uber.org/goleak"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(12)
	goleak.VerifyTestMain(m)
}

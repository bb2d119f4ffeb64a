package taskrunner

import (
	"testing"

	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	shell.ServeIfAsked()
	testneeds.Parallel(12)
	testneeds.NoLeaks(m)
}

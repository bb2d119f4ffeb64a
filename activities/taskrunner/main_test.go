package taskrunner

import (
	"testing"

	"go.uber.org/goleak"

	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	shell.ServeIfAsked()
	testneeds.Parallel(12)
	goleak.VerifyTestMain(m)
}

package sessions

import (
	"testing"

	"go.uber.org/goleak"

	"switchyard/activities/executor/inside"
	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	shell.ServeIfAsked()
	inside.ServeIfAsked()
	testneeds.Parallel(8)
	goleak.VerifyTestMain(m)
}

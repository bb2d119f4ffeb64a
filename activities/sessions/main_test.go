package sessions

import (
	"testing"

	"switchyard/activities/executor/inside"
	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	shell.ServeIfAsked()
	inside.ServeIfAsked()
	testneeds.Parallel(8)
	testneeds.NoLeaks(m)
}

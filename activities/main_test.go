package activities

import (
	"testing"

	"go.uber.org/goleak"

	"switchyard/activities/executor/shell"
)

func TestMain(m *testing.M) {
	shell.ServeIfAsked()
	goleak.VerifyTestMain(m)
}

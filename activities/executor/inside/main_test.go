//go:build linux

package inside

import (
	"testing"

	"go.uber.org/goleak"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	ServeIfAsked()
	targetIfAsked()
	testneeds.Parallel(4)
	goleak.VerifyTestMain(m)
}

//go:build linux

package inside

import (
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	ServeIfAsked()
	targetIfAsked()
	testneeds.Parallel(4)
	testneeds.NoLeaks(m)
}

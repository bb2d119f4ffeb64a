package cluster

import (
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(4)
	testneeds.NoLeaks(m)
}

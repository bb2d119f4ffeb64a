package guest_test

import (
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(8)
	testneeds.NoLeaks(m)
}

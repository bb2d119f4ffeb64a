package guest_test

import (
	"testing"

	"go.uber.org/goleak"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(8)
	goleak.VerifyTestMain(m)
}

package cli

import (
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(8) // parallel tests mostly wait
	testneeds.NoLeaks(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

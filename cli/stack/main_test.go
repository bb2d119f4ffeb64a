package stack

import (
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	ServeGuardIfAsked()
	testneeds.NoLeaks(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package shell

import (
	"fmt"
	"os"
	"testing"

	"switchyard/activities/executor/inside"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	ServeIfAsked()
	inside.ServeIfAsked()
	runHelperIfAsked()
	dialIfAsked()
	testneeds.Parallel(8)
	code := m.Run()
	if code == 0 {
		if err := testneeds.FindLeaks(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if err := leftovers(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

package shell

import (
	"fmt"
	"os"
	"testing"
	"time"

	"switchyard/activities/executor/inside"
	"switchyard/dev/testneeds"
)

// awaitNoLeftovers waits until nothing that the tests have started is left. It returns an error with what stays.
func awaitNoLeftovers() error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := leftovers(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

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
		if err := awaitNoLeftovers(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

package cluster

import (
	"fmt"
	"os"
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(4)
	code := m.Run()
	if code == 0 {
		if err := testneeds.FindLeaks(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

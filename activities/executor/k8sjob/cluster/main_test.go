package cluster

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	testneeds.Parallel(4)
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

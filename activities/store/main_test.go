package store_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	if dir, name, ok := strings.Cut(os.Getenv(racerEnv), "\n"); ok {
		if err := race(dir, name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testneeds.Parallel(8)
	testneeds.NoLeaks(m)
}

//go:build !engines

package container_test

import (
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

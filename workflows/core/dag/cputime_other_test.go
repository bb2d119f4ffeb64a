//go:build !unix

package dag_test

import (
	"testing"
	"time"
)

var began = time.Now()

// cpuTime returns the elapsed time, because the processor time is not available here.
func cpuTime(testing.TB) time.Duration { return time.Since(began) }

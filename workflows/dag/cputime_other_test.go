//go:build !unix

package dag_test

import (
	"testing"
	"time"
)

var began = time.Now()

// cpuTime returns the time that has passed, where that of the processor is not at hand.
func cpuTime(testing.TB) time.Duration { return time.Since(began) }

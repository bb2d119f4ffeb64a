//go:build unix

package dag_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time that this process has used. Other processes on the machine do not add to it.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

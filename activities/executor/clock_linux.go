package executor

import "golang.org/x/sys/unix"

// Now reads CLOCK_BOOTTIME.
func Now() Instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("read CLOCK_BOOTTIME: " + err.Error()) // every Linux that Go runs on has it
	}
	return Instant(t.Nano())
}

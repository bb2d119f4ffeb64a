//go:build !linux

package procfs

import "time"

// PeakMemory returns 0, since the peak is unknown on this system.
func PeakMemory(int) int64 { return 0 }

// HasExited returns false, since the state of a process is unknown on this system.
func HasExited(int) bool { return false }

// CPUTime returns 0, as for a process whose processor time is unknown.
func CPUTime(int) time.Duration { return 0 }

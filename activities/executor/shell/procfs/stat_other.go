//go:build !linux

package procfs

// PeakMemory returns 0, since the peak is unknown on this system.
func PeakMemory(int) int64 { return 0 }

// HasExited returns false, since the state of a process is unknown on this system.
func HasExited(int) bool { return false }

//go:build !linux

package procfs

// PeakMemory returns 0: the peak is not known on this system.
func PeakMemory(int) int64 { return 0 }

// HasExited returns false: whether a process has ended is not known on this system.
func HasExited(int) bool { return false }

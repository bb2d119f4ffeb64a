//go:build !linux

package stack

// releaseMemory is a no-op: other systems reclaim unused pages by themselves.
func releaseMemory() error { return nil }

//go:build !linux

package stack

// releaseMemory does nothing: other systems reclaim unused pages by themselves.
func releaseMemory() error { return nil }

//go:build !linux

package store

// appendsWhole reports whether concurrent appends to a file in dir end up in it whole, one after another, even from
// several processes. On this platform it cannot tell the type of file system and returns false.
func appendsWhole(string) bool { return false }

//go:build !linux

package store

// appendsWhole reports whether a file in dir grows by whole appends, one after the
// other, whoever makes them. Here the kind of file system is unknown.
func appendsWhole(string) bool { return false }

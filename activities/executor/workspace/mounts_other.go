//go:build !linux

package workspace

// detachMounts does nothing: only Linux is known to have mounts that a program leaves in a directory.
func detachMounts(string) error { return nil }

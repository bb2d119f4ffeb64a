//go:build !linux

package shell

// ServeIfAsked does nothing on systems other than Linux.
func ServeIfAsked() {}

//go:build !unix

package workers

// private finds nothing wrong: who may use a folder is not told by its mode here.
func private(string) error { return nil }

//go:build !unix

package workers

// private finds nothing wrong: who may use a folder does not follow from its mode here.
func private(string) error { return nil }

//go:build !unix

package workspace

import "io/fs"

// untouched cannot be decided on this system, so no directory is reused.
func untouched(fs.FileInfo, fs.FileMode) bool { return false }

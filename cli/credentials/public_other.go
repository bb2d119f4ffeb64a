//go:build !unix

package credentials

import "io/fs"

// isPublic returns false because modes do not show who may read a file on this system.
func isPublic(fs.FileInfo) bool { return false }

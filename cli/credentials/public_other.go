//go:build !unix

package credentials

import "io/fs"

// isPublic cannot tell where modes do not say who may read a file.
func isPublic(fs.FileInfo) bool { return false }

//go:build unix

package credentials

import "io/fs"

// isPublic reports whether others than its owner may read a file, or write it.
func isPublic(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 }

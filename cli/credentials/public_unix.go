//go:build unix

package credentials

import "io/fs"

// isPublic reports whether users other than the owner may read or write a file.
func isPublic(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 }

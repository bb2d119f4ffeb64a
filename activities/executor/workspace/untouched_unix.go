//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"
)

// untouched reports whether a file or directory still has its original permissions and owner and, for a file, no second
// hard link.
func untouched(info fs.FileInfo, mode fs.FileMode) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().Perm() == mode && int(stat.Uid) == os.Geteuid() && (info.IsDir() || stat.Nlink == 1)
}

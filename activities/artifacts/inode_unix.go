//go:build unix

package artifacts

import (
	"io/fs"
	"syscall"
)

// inodeOf returns what all hard links of a file have in common. ok is false for a file with a single link.
func inodeOf(info fs.FileInfo) (id [2]uint64, ok bool) {
	stat, isUnix := info.Sys().(*syscall.Stat_t)
	if !isUnix || stat.Nlink < 2 {
		return id, false
	}
	return [2]uint64{uint64(stat.Dev), stat.Ino}, true
}

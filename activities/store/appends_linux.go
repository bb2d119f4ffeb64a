package store

import (
	"slices"

	"golang.org/x/sys/unix"
)

// localFileSystems are the file systems that lock a file for each write. Network file systems do not, for the writes of
// other machines. See statfs(2).
var localFileSystems = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
	0x2fc12fc1, // ZFS
}

// appendsWhole reports whether concurrent appends to a file in dir end up in it whole, one after another, even from
// several processes.
func appendsWhole(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && slices.Contains(localFileSystems, int64(s.Type))
}

package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeBytes returns how many bytes a user may still write to the file system of a folder.
func freeBytes(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, fmt.Errorf("room of %s: %w", folder, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

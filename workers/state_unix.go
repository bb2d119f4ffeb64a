//go:build unix

package workers

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// private returns an error if other users can read or write the folder, or could have created it.
func private(dir string) error {
	var folder unix.Stat_t
	if err := unix.Lstat(dir, &folder); err != nil {
		return fmt.Errorf("inspect %s: %w", dir, err)
	}
	switch {
	case folder.Mode&unix.S_IFMT != unix.S_IFDIR || int(folder.Uid) != os.Getuid():
		return fmt.Errorf("%s is not a folder owned by user %d", dir, os.Getuid())
	case folder.Mode&0o077 != 0:
		return fmt.Errorf("%s is open to other users; run `chmod 700 %s`", dir, dir)
	}
	return nil
}

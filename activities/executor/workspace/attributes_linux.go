package workspace

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// protected is the mask of FS_IMMUTABLE_FL and FS_APPEND_FL from linux/fs.h.
const protected = 0x10 | 0x20

// changeable clears the chattr(1) attributes of a file or directory that keep even root from removing it or its
// content.
func changeable(path string, kind fs.FileMode) {
	if !kind.IsRegular() && !kind.IsDir() {
		return // only files and directories have attributes, and opening a pipe has side effects
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&protected != 0 {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags&^protected)
	}
}

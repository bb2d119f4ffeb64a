package workspace

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// protected are FS_IMMUTABLE_FL and FS_APPEND_FL of linux/fs.h.
const protected = 0x10 | 0x20

// changeable takes from a file or directory the attributes of chattr(1) with which not even root
// can remove it, or what is in it.
func changeable(path string, kind fs.FileMode) {
	if !kind.IsRegular() && !kind.IsDir() {
		return // others have none, and a pipe is not to be opened
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

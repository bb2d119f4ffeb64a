//go:build unix

package doctor

import (
	"io/fs"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownerOf returns the name of the user who owns a file.
func ownerOf(info fs.FileInfo) (name string, known bool) {
	stat, isStat := info.Sys().(*syscall.Stat_t)
	if !isStat {
		return "", false
	}
	id := strconv.Itoa(int(stat.Uid))
	if u, err := user.LookupId(id); err == nil {
		return u.Username, true
	}
	return "#" + id, true
}

// canWrite returns nil if this process may create files in a folder.
func canWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// openFiles returns how many files this process may have open.
func openFiles() (limit uint64, err error) {
	var r syscall.Rlimit
	err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r)
	return uint64(r.Cur), err
}

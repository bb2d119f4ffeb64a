//go:build unix

package stack

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockFolder locks a new folder until the caller closes the result or the process ends.
func lockFolder(dir string) (io.Closer, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// On a file system without locks the start succeeds, but the folder is never removed as abandoned: without the lock
	// file no process takes it for abandoned.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, os.Remove(lock.Name())
	}
	return lock, nil
}

// removeAbandoned removes a folder of this user if its lock is older than before and not held.
func removeAbandoned(dir string, before time.Time) {
	var folder unix.Stat_t
	// The folder may belong to any user, so links are not followed and opening a pipe does not block.
	err := unix.Lstat(dir, &folder)
	if err != nil || folder.Mode&unix.S_IFMT != unix.S_IFDIR || int(folder.Uid) != os.Getuid() {
		return
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer lock.Close()
	info, err := lock.Stat()
	if err != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before) {
		return
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = os.RemoveAll(dir)
	}
}

//go:build unix

package session

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the length of a socket path that every Unix accepts, in bytes.
const maxSocketPath = 100

// socketPath returns a path of a session's socket that is short enough for the system. It is valid until done is
// called.
func socketPath(dir, id string) (path string, done func(), err error) {
	path = filepath.Join(dir, id+socketSuffix)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("the path of socket %s is longer than %d bytes; use a shorter scratch folder or name", path, maxSocketPath)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), id+socketSuffix), func() { folder.Close() }, nil
}

// checkPrivate returns an error if users other than this one can access a folder, or could have created it.
func checkPrivate(dir string) error {
	var folder unix.Stat_t
	if err := unix.Lstat(dir, &folder); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if folder.Mode&unix.S_IFMT != unix.S_IFDIR || int(folder.Uid) != os.Getuid() || folder.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a private folder of this user", dir)
	}
	return nil
}

// lockSession locks a session until the file is closed or this process ends.
func lockSession(dir, id string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, id+lockSuffix), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("session %s is already attached; choose another name", id)
	}
	return lock, nil
}

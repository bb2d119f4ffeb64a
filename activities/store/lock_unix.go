//go:build unix

package store

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a file, which is made if need be, until the result is closed or
// the process ends. When another process has it, the error is errLocked. A file
// system without locks does without.
func lockFile(path string) (io.Closer, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == unix.EWOULDBLOCK {
		_ = lock.Close()
		return nil, fmt.Errorf("%s: %w", path, errLocked)
	}
	return lock, nil
}

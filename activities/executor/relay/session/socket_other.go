//go:build !unix

package session

import (
	"os"
	"path/filepath"
)

// socketPath returns the path of a session's socket.
func socketPath(dir, id string) (path string, done func(), err error) {
	return filepath.Join(dir, id+socketSuffix), func() {}, nil
}

// checkPrivate returns an error if the folder does not exist. On this system its mode does not show who may use it.
func checkPrivate(dir string) error {
	_, err := os.Stat(dir)
	return err
}

// lockSession opens the lock file of a session without locking it; files are locked on Unix only.
func lockSession(dir, id string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, id+lockSuffix), os.O_CREATE|os.O_RDWR, 0o600)
}

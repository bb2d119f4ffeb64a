//go:build !unix

package session

import (
	"os"
	"path/filepath"
)

// socketPath returns the path of the socket of a session.
func socketPath(dir, id string) (path string, done func(), err error) {
	return filepath.Join(dir, id+socketSuffix), func() {}, nil
}

// checkPrivate finds nothing wrong but a folder that is not there: who may use it does not follow from its mode here.
func checkPrivate(dir string) error {
	_, err := os.Stat(dir)
	return err
}

// lockSession opens the lock of a session; files are locked on Unix only.
func lockSession(dir, id string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, id+lockSuffix), os.O_CREATE|os.O_RDWR, 0o600)
}

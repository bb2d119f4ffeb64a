//go:build !unix

package store

import (
	"io"
	"os"
)

// lockFile makes a file; there are no locks here.
func lockFile(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}

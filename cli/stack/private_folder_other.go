//go:build !unix

package stack

import (
	"io"
	"time"
)

// lockFolder does nothing: files are locked on Unix only.
func lockFolder(string) (io.Closer, error) { return nil, nil }

// removeAbandoned does nothing: without locks no process can find which folders are in use.
func removeAbandoned(string, time.Time) {}

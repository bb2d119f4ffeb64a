//go:build !unix

package stack

import (
	"io"
	"time"
)

// lockFolder does nothing: files are locked only on Unix.
func lockFolder(string) (io.Closer, error) { return nil, nil }

// removeAbandoned does nothing: without locks no process can detect which folders are in use.
func removeAbandoned(string, time.Time) {}

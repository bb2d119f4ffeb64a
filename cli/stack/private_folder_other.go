//go:build !unix

package stack

import (
	"io"
	"time"
)

// lockFolder is a no-op: files are locked only on Unix.
func lockFolder(string) (io.Closer, error) { return nil, nil }

// removeAbandoned is a no-op: without locks no process can detect which folders are in use.
func removeAbandoned(string, time.Time) {}

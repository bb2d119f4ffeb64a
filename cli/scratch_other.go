//go:build !unix

package cli

import (
	"io"
	"time"
)

// holdFolder does nothing: files are locked on Unix only.
func holdFolder(string) (io.Closer, error) { return nil, nil }

// removeAbandoned does nothing: without locks nobody knows what is in use.
func removeAbandoned(string, time.Time) {}

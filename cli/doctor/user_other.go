//go:build !unix

package doctor

import (
	"errors"
	"io/fs"
)

// ownerOf reports that the owner of a file is unknown.
func ownerOf(fs.FileInfo) (name string, known bool) { return "", false }

// canWrite returns nil, because only a write shows what this system allows.
func canWrite(string) error { return nil }

// openFiles returns an error, because this system has no such limit.
func openFiles() (limit uint64, err error) { return 0, errors.ErrUnsupported }

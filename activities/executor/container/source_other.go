//go:build !linux

package container

import (
	"os"
	"path/filepath"
)

// openSource opens the target of a path and returns the target's resolved path. The
// engine runs in a virtual machine and cannot use a descriptor of this process,
// which checkOpenMounts reports.
func openSource(written string) (_ *os.File, at string, err error) {
	if at, err = filepath.EvalSymlinks(written); err != nil {
		return nil, "", err
	}
	f, err := os.Open(at)
	return f, at, err
}

package container

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openSource opens the target of a path without side effects, and returns the target's
// resolved path.
func openSource(written string) (_ *os.File, at string, err error) {
	f, err := os.OpenFile(written, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", err
	}
	if at, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil {
		f.Close()
		return nil, "", err
	}
	return f, at, nil
}

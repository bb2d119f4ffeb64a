package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// plainMount replaces the escapes of mountinfo; see proc_pid_mountinfo(5).
var plainMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

// detachMounts detaches what programs have mounted below a directory, so that its removal removes no file elsewhere.
func detachMounts(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(string(mounts), "\n")
	for _, line := range slices.Backward(lines) { // the newest first
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := plainMount.Replace(fields[4])
		if !strings.HasPrefix(point, dir+"/") {
			continue
		}
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return &fs.PathError{Op: "unmount", Path: point, Err: err}
		}
	}
	return nil
}

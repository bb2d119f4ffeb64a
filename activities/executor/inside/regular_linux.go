package inside

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openRegular opens a file only if it is regular. Opening a device would bypass what keeps the process from it, and opening a
// pipe would wait for its other end.
func openRegular(file string, flags int, mode fs.FileMode) (*os.File, error) {
	wrong := &fs.PathError{Op: "open", Path: file, Err: errors.New("it is not a regular file")}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, wrong
	}
	f, err := os.OpenFile(file, flags|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
	if err != nil {
		return nil, err
	}
	// The file may have been replaced in between.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		if err == nil && info.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: file, Err: unix.EISDIR}
		}
		return nil, wrong
	}
	return f, nil
}

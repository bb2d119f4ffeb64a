//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

type file int

func open(path string) (file, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, permissions)
		if !errors.Is(err, unix.EINTR) {
			return file(fd), err
		}
	}
}

func (f file) lock() (held bool, err error) {
	for {
		err := unix.Flock(int(f), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return true, nil
		default:
			return false, err
		}
	}
}

// is reports whether the file is still the one at path.
func (f file) is(path string) bool {
	var mine, there unix.Stat_t
	return unix.Fstat(int(f), &mine) == nil && unix.Lstat(path, &there) == nil &&
		mine.Dev == there.Dev && mine.Ino == there.Ino
}

func (f file) write(text []byte) {
	if err := unix.Ftruncate(int(f), 0); err == nil {
		_, _ = unix.Pwrite(int(f), text, 0)
	}
}

// remove removes the file while it is still locked. A process that has already opened the file then
// finds that it is no longer the one at its path, and a later process creates a new file.
func (f file) remove(path string) error {
	var err error
	if f.is(path) {
		err = os.Remove(path)
	}
	return errors.Join(err, f.release())
}

// release unlocks the file and closes it. Closing alone releases the lock only when every copy of the descriptor is
// closed, and a process that this one is just starting has copies until it executes its program.
func (f file) release() error {
	var err error
	for {
		if err = unix.Flock(int(f), unix.LOCK_UN); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return errors.Join(err, f.close())
}

func (f file) close() error { return unix.Close(int(f)) }

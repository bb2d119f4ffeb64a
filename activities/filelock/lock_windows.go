package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

type file windows.Handle

// beyond returns the range of the file to lock. It lies far behind the content, because other
// processes cannot read a locked range and they need to read the process id.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

func open(path string) (file, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	// Without FILE_SHARE_DELETE, no process can remove the file while it is open.
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE,
		nil, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	return file(h), err
}

func (f file) lock() (held bool, err error) {
	err = windows.LockFileEx(windows.Handle(f), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, beyond())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}

func (f file) is(string) bool { return true }

func (f file) write(text []byte) {
	if err := windows.Ftruncate(windows.Handle(f), 0); err == nil {
		_, _ = windows.Write(windows.Handle(f), text)
	}
}

// remove closes the file and then removes it. A process that has opened the file again by then
// keeps it.
func (f file) remove(path string) error {
	if err := f.close(); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// release closes the file, which unlocks it.
func (f file) release() error { return f.close() }

func (f file) close() error { return windows.CloseHandle(windows.Handle(f)) }

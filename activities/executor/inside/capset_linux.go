package inside

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// capsetAll sets the capabilities of all threads. It does nothing in a program linked with the C library.
func capsetAll(header *unix.CapUserHeader, data *[2]unix.CapUserData) error {
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if errno != 0 && !errors.Is(errno, syscall.ENOTSUP) {
		return errno
	}
	return nil
}

package qemu

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// isRunning reports whether the QEMU of a folder runs. The folder in its command line distinguishes it from a later process of its
// number.
func (f folder) isRunning() bool {
	pid, ok := f.readNumber(pidFile)
	return ok && f.isOf(pid)
}

// isOf reports whether a process is QEMU with the machine of the folder.
func (f folder) isOf(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && bytes.Contains(line, []byte(quoteOption(f.file(socketFile))+","))
}

// kill ends the QEMU of the folder by force. It is no error if it does not run.
func (f folder) kill() error {
	pid, ok := f.readNumber(pidFile)
	if !ok || pid <= 1 {
		return nil
	}
	// The file descriptor holds on to the process while it is looked at.
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !f.isOf(pid) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

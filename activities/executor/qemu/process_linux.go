package qemu

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// isRunning reports whether the QEMU of a folder runs. The folder in the command line tells it apart from a later
// process with the same number.
func (f folder) isRunning() bool {
	pid, ok := f.readNumber(pidFile)
	return ok && f.isOf(pid)
}

// isOf reports whether a process is the QEMU of this folder's machine.
func (f folder) isOf(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && bytes.Contains(line, []byte(quoteOption(f.file(socketFile))+","))
}

// kill kills the QEMU of the folder. It is a no-op if QEMU does not run.
func (f folder) kill() error {
	pid, ok := f.readNumber(pidFile)
	if !ok || pid <= 1 {
		return nil
	}
	// The file descriptor refers to this process, so that the signal cannot reach a later process with the same number.
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

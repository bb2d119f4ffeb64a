package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A process can ask for the exit status of a process that is not its child through a pidfd that was opened before the end,
// since Linux 6.15: see PIDFD_GET_INFO in linux/pidfd.h.
const (
	pidfdGetInfo  = 0xc040ff0b // _IOWR(0xff, 11, struct pidfd_info), with the first 64 bytes of the struct
	pidfdInfoExit = 1 << 3
	// reapPause is the time between two looks at a dead process that its parent has not waited for yet, and reapPatience how long it is
	// given for that.
	reapPause, reapPatience = 10 * time.Millisecond, 5 * time.Second
)

// pidfdInfo is the beginning of struct pidfd_info.
type pidfdInfo struct {
	mask, cgroup uint64
	ids          [11]uint32
	exitCode     int32
}

// AwaitExit waits for the end of a process and returns its wait status. pidfd was opened before the end, and is polled by a goroutine
// that nothing interrupts. pid is that of the process.
func AwaitExit(pidfd, pid int) (syscall.WaitStatus, error) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, -1)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
	for until := time.Now().Add(reapPatience); ; time.Sleep(reapPause) {
		info := pidfdInfo{mask: pidfdInfoExit}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
		if errno == 0 && info.mask&pidfdInfoExit != 0 {
			return syscall.WaitStatus(info.exitCode), nil
		}
		if errno != 0 && errno != unix.ESRCH {
			return 0, fmt.Errorf("read the exit status of process %d: %w", pid, errno)
		}
		if time.Now().After(until) {
			return zombieStatus(pid)
		}
	}
}

// zombieStatus returns the wait status of a dead process that its parent does not wait for.
func zombieStatus(pid int) (syscall.WaitStatus, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 50 || fields[0][0] != 'Z' {
		return 0, errors.New("the exit status of a process is not known")
	}
	code, err := strconv.Atoi(string(fields[49]))
	return syscall.WaitStatus(code), err
}

// IsOver reports whether the process of a pidfd has ended.
func IsOver(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// clockTick is the unit of processor times in /proc on all architectures of Linux.
const clockTick = time.Second / 100

// CPUTime returns the processor time of a process and of the children that it has waited for, or 0 if it is unknown.
func CPUTime(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return 0
	}
	var ticks int
	for _, field := range fields[11:15] {
		n, _ := strconv.Atoi(string(field))
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

//go:build unix

package shell

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
)

// resultOf returns how the program ended, and the resources that it and the children it
// waited for have used.
func resultOf(state *os.ProcessState) executor.Result {
	r := executor.Result{ExitCode: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok {
		r = resultOfStatus(status)
	}
	r.CPUTime = state.UserTime() + state.SystemTime()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.PeakMemory = rssBytes(int64(usage.Maxrss))
	}
	return r
}

// resultOfStatus returns how a program with a wait status ended.
func resultOfStatus(status syscall.WaitStatus) executor.Result {
	if !status.Signaled() {
		return executor.Result{ExitCode: status.ExitStatus()}
	}
	r := executor.Result{ExitCode: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())}
	if r.Signal == "" {
		r.Signal = fmt.Sprintf("signal %d", int(status.Signal()))
	}
	return r
}

// isKilled reports whether the program ended by SIGKILL.
func isKilled(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// rssBytes converts ru_maxrss to bytes. Linux counts it in KiB and Darwin in bytes.
func rssBytes(maxrss int64) int64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return maxrss
	}
	return maxrss << 10
}

// ownPeak returns the largest resident set of this process, in bytes.
func ownPeak() int64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return rssBytes(int64(usage.Maxrss))
}

// isTaskFault reports whether a program could not start through a fault of the task.
func isTaskFault(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EACCES, syscall.EPERM, syscall.ENOEXEC, syscall.EINVAL, syscall.ENOTDIR,
		syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ETXTBSY,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

package podhelper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds for the steps after the end of the program.
const (
	// linger is how long other processes may take to end after the program, such as a tee at the end of a pipe.
	linger = 200 * time.Millisecond
	// stopLinger replaces linger after a stop signal, which was forwarded to the process group of the program.
	stopLinger = 5 * time.Second
	// killTime is how long killed processes may take to end.
	killTime = 5 * time.Second
	// drainTime is how long the reader of standard error may take to drain it.
	drainTime = time.Second
)

// Run runs a program with the standard streams and the environment of this process, and prints the frames of its files
// when it has ended. It returns the exit code for this process: that of the program, or 128+n if signal n ended it. If
// the program cannot be started, Run prints the reason to standard error and returns one of the Exit... codes.
//
// Run takes over the signals and the children of the process, which must do nothing else.
func Run(args []string) int {
	nonce := os.Getenv(FrameVariable)
	if nonce != "" {
		if err := checkNonce(nonce); err != nil {
			return complain(ExitHelper, err)
		}
	}
	if len(args) == 0 {
		return complain(ExitHelper, errors.New("no command specified"))
	}
	signals := catchSignals()
	// Process 1 receives all orphans anyway.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	pid, err := start(args)
	if err != nil {
		return complain(startExitCode(err), fmt.Errorf("start %s: %w", args[0], err))
	}
	signals.forwardTo(pid)
	ended := reap(pid)
	debug.FreeOSMemory() // the memory limit of the container is meant for the program

	status := <-ended.program
	patience := linger
	if signals.isStopping() {
		patience = stopLinger
	}
	ended.finish(patience)
	if nonce != "" {
		drain(int(os.Stderr.Fd()), drainTime)
		if err := writeFrames(os.Stdout, nonce, readFiles(os.Getenv)); err != nil {
			_ = complain(0, fmt.Errorf("print the files of the task: %w", err))
		}
	}
	return exitCode(status)
}

// start starts the program in a process group of its own, which gets the terminal if there is one.
func start(args []string) (pid int, err error) {
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return 0, err
	}
	attr := &syscall.ProcAttr{
		Env:   slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, FrameVariable+"=") }),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Foreground: hasTerminal()},
	}
	return syscall.ForkExec(path, args, attr)
}

// hasTerminal reports whether this process group owns the terminal on standard input.
func hasTerminal() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// startExitCode returns a shell's exit code for a program that cannot be started.
func startExitCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return ExitNotFound
	}
	return ExitCannotRun
}

// exitCode returns a shell's exit code for a wait status.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// drain waits until a pipe has been read empty. A container engine may log long lines in pieces, and a line of the
// other stream can end up between them.
func drain(fd int, patience time.Duration) {
	for end := time.Now().Add(patience); !isDrained(fd) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// isDrained reports whether a pipe is empty. It returns true for anything but a pipe.
func isDrained(fd int) bool {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return true
	}
	unread, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	return err != nil || unread == 0
}

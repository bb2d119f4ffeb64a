package container

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// findProcess looks at the process that an engine names. An engine in a virtual machine,
// or on another one, names one that is not here, or is another's: it must have the mark.
func findProcess(pid int, mark string) process {
	if pid <= 0 {
		return process{}
	}
	p := process{pid: pid, started: startOf(pid)}
	group, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil || p.started == "" || !strings.Contains(string(group), mark) {
		return process{}
	}
	return p
}

// startOf is when a process has started, in the kernel's ticks; empty: there is none.
func startOf(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name of the program is in parentheses and may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// alive reports whether the process is known to be there.
func (p process) alive() bool { return p.pid > 0 && startOf(p.pid) == p.started }

// environ returns the environment that the program of the process has started with.
func (p process) environ() ([]byte, error) {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err == nil && !p.alive() {
		return nil, syscall.ESRCH // it is that of a later process
	}
	return environ, err
}

// signal sends a signal to the process. One that has ended is no error.
func (p process) signal(s syscall.Signal) error {
	if p.pid == 0 {
		return errNotHere
	}
	// The file descriptor holds on to the process while it is looked at.
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !p.alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// awaitEnd waits for the end of the process, for a while.
func (p process) awaitEnd(patience time.Duration) bool {
	for until := time.Now().Add(patience); p.alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// signalGroup sends a signal to a process that leads a group, and to the group.
func (p process) signalGroup(s syscall.Signal) error {
	if p.pid == 0 {
		return errNotHere
	}
	if !p.alive() {
		return nil
	}
	if err := unix.Kill(-p.pid, s); errors.Is(err, unix.ESRCH) {
		return p.signal(s) // it leads none
	} else if err != nil {
		return err
	}
	return nil
}

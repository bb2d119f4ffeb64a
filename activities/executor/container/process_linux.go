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

// findProcess looks up the process that an engine reports. An engine in a virtual
// machine or on another machine reports a PID that is unknown here or belongs to another
// process, so the process's cgroup must contain mark.
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

// startOf returns the start time of a process in the kernel's ticks, or "" if there is
// no such process.
func startOf(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name of the program is in parentheses and may contain any characters.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// killContainer kills the processes of a container that are on this machine, without its engine. id is the container's id or the
// start of it; without one, killContainer does nothing.
func killContainer(id string) error {
	if id == "" {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p := findProcess(pid, id); p.pid > 0 {
				errs = append(errs, p.signal(syscall.SIGKILL))
			}
		}
	}
	return errors.Join(errs...)
}

// alive reports whether the process is known to be running.
func (p process) alive() bool { return p.pid > 0 && startOf(p.pid) == p.started }

// environ returns the environment with which the process's program was started.
func (p process) environ() ([]byte, error) {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err == nil && !p.alive() {
		return nil, syscall.ESRCH // a later process has the PID
	}
	return environ, err
}

// signal sends a signal to the process. It returns nil if the process has ended.
func (p process) signal(s syscall.Signal) error {
	if p.pid == 0 {
		return errNotHere
	}
	// The file descriptor pins the process while it is checked.
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

// awaitEnd waits until the process ends and returns true, or false after patience.
func (p process) awaitEnd(patience time.Duration) bool {
	for until := time.Now().Add(patience); p.alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// signalGroup sends a signal to a process and, if it leads a process group, to its
// group.
func (p process) signalGroup(s syscall.Signal) error {
	if p.pid == 0 {
		return errNotHere
	}
	if !p.alive() {
		return nil
	}
	if err := unix.Kill(-p.pid, s); errors.Is(err, unix.ESRCH) {
		return p.signal(s) // the process leads no group
	} else if err != nil {
		return err
	}
	return nil
}

package podhelper

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// children tracks the children of this process, including orphans.
type children struct {
	// program receives the wait status of the program.
	program chan syscall.WaitStatus
	// gone is closed when there are no more children.
	gone chan struct{}
}

// reap waits for all children of this process; pid is the program.
func reap(pid int) *children {
	c := &children{program: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	go func() {
		defer close(c.gone)
		for {
			var status syscall.WaitStatus
			child, err := syscall.Wait4(-1, &status, 0, nil)
			switch {
			case err == syscall.EINTR:
			case err != nil: // ECHILD
				return
			case child == pid:
				c.program <- status
			}
		}
	}()
	return c
}

// finish waits for the remaining children, and kills them after patience. The children of a killed process become
// children of this process, and are killed, too.
func (c *children) finish(patience time.Duration) {
	select {
	case <-c.gone:
		return
	case <-time.After(patience):
	}
	end := time.After(killTime)
	for {
		for _, pid := range childPIDs() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-c.gone:
			return
		case <-end:
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// childPIDs returns the process ids of this process's children.
func childPIDs() []int {
	var pids []int
	threads, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range threads {
		text, _ := os.ReadFile(path) // the thread may have ended
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
)

// cgroups hold each attempt in a directory of its own below one directory for
// this Executor. No controller is needed.
type cgroups struct {
	guard  *watchdog
	parent *cgroupParent
	// memory says that directories have memory.events.
	memory bool
	next   atomic.Int64
	// orphans is nil unless this process adopts what the attempts leave.
	orphans *reaper
}

func newCgroups(guard *watchdog) (*cgroups, error) {
	base, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	removeStale(base)
	parent, err := newCgroupParent(base)
	if err != nil {
		return nil, err
	}
	c := &cgroups{guard: guard, parent: parent}
	if adopts() {
		c.orphans = newReaper()
	}
	if err := c.probe(); err != nil {
		return nil, errors.Join(err, parent.remove())
	}
	return c, nil
}

// probe forks a process in a cgroup, since leave to make directories is not
// leave to put processes there, and old kernels and seccomp filters lack calls.
func (c *cgroups) probe() error {
	t, err := c.enclose("", nil)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(t.(*cgroup).path, "cgroup.kill")); err != nil {
		return errors.Join(err, t.end())
	}
	_, err = os.Stat(filepath.Join(t.(*cgroup).path, "memory.events"))
	c.memory = err == nil
	// This program cannot exist; the kernel says so only once the new process
	// is in its cgroup, and with an error that no other step gives.
	_, err = os.StartProcess("/dev/null/probe", []string{"probe"}, &os.ProcAttr{Env: []string{}, Sys: t.attr()})
	if !errors.Is(err, unix.ENOTDIR) {
		return errors.Join(fmt.Errorf("start a process in a cgroup: %w", err), t.end())
	}
	return t.end()
}

func (c *cgroups) mechanism() Mechanism { return Cgroup }

func (c *cgroups) close() error {
	err := c.parent.remove()
	c.orphans.sweepAll()
	return err
}

func (c *cgroups) enclose(_ string, lease *executor.Lease) (tree, error) {
	name := strconv.FormatInt(c.next.Add(1), 10)
	parent := c.parent.fd
	if err := unix.Mkdirat(parent, name, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open cgroup: %w", err), unix.Unlinkat(parent, name, unix.AT_REMOVEDIR))
	}
	g := &cgroup{all: c, name: name, path: filepath.Join(c.parent.path, name), fd: fd, leased: lease != nil}
	if g.leased {
		if err := c.guard.add(name, lease); err != nil {
			return nil, errors.Join(err, g.end())
		}
	}
	return g, nil
}

// cgroup is the directory of one attempt.
type cgroup struct {
	all     *cgroups
	name    string
	path    string
	fd      int
	leader  int
	removed bool
	// leased says that the watchdog knows of it by itself.
	leased bool
}

func (c *cgroup) attr() *syscall.SysProcAttr {
	a := sessionAttr()
	a.UseCgroupFD, a.CgroupFD = true, c.fd
	return a
}

func (c *cgroup) started(pid int) {
	c.leader = pid
	c.all.orphans.keep(pid)
}

// terminate signals the group at once, which misses no child that is being
// forked, and then those that have left it.
func (c *cgroup) terminate() {
	if c.leased {
		c.all.guard.stopping(c.name)
	}
	signalGroup(c.leader, syscall.SIGTERM)
	for _, pid := range c.pids() {
		if group, err := unix.Getpgid(pid); err == nil && group != c.leader {
			_ = unix.Kill(pid, unix.SIGTERM)
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	}
}

func (c *cgroup) kill() { _ = killCgroup(c.path) }

func (c *cgroup) pids() []int { return cgroupPids(c.path) }

func (c *cgroup) oomKilled() bool {
	if !c.all.memory {
		return false
	}
	events, err := os.ReadFile(filepath.Join(c.path, "memory.events"))
	return err == nil && countOf(events, "oom_kill") > 0
}

// empty removes the directory, which works only without processes, and so
// tells with one call what else takes three.
func (c *cgroup) empty() bool {
	if c.removed {
		return true
	}
	switch err := unix.Unlinkat(c.all.parent.fd, c.name, unix.AT_REMOVEDIR); {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		c.removed = true
	case unpopulated(c.path):
		// The attempt has made cgroups of its own below.
		c.removed = removeCgroup(c.path) == nil
	}
	return c.removed
}

func (c *cgroup) end() error {
	defer unix.Close(c.fd)
	killed := false
	err := until(func() bool {
		if c.empty() {
			return true
		}
		if !killed {
			killed = killCgroup(c.path) == nil
		}
		return false
	}, func() error { return fmt.Errorf("cgroup %s: processes %v survive SIGKILL", c.path, c.pids()) })
	c.all.orphans.forget(c.leader)
	c.all.orphans.sweep()
	if c.leased {
		c.all.guard.remove(c.name)
	}
	return err
}

// killCgroup ends all processes in and below a directory, new forks included.
func killCgroup(path string) error {
	f, err := os.OpenFile(filepath.Join(path, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("1")
	return errors.Join(err, f.Close())
}

// unpopulated tells whether no process is in or below a directory.
func unpopulated(path string) bool {
	events, err := os.ReadFile(filepath.Join(path, "cgroup.events"))
	return err == nil && countOf(events, "populated") == 0
}

// cgroupPids lists the processes in and below a directory.
func cgroupPids(path string) []int {
	var pids []int
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		text, _ := os.ReadFile(filepath.Join(p, "cgroup.procs"))
		for _, field := range bytes.Fields(text) {
			if pid, err := strconv.Atoi(string(field)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// removeCgroup removes a directory without processes and those below it.
func removeCgroup(path string) error {
	var dirs []string
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// countOf reads one number from a file of "name number" lines, -1 when it is not there.
func countOf(text []byte, name string) int {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			if n, err := strconv.Atoi(string(bytes.TrimSpace(value))); err == nil {
				return n
			}
		}
	}
	return -1
}

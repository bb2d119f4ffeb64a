package shell

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/poll"
	"switchyard/activities/executor/shell/procfs"
)

// cgroupFactory places each attempt in a cgroup directory of its own, below one directory
// for the Executor. Controllers are needed only for limits.
type cgroupFactory struct {
	guard  *watchdog
	parent *cgroup.Parent
	// delegated reports that limits are available: directories with limits are below cgroup.LimitedDir and the others below
	// cgroup.FreeDir. Otherwise undelegated is the reason.
	delegated   bool
	undelegated error
	// memory reports that directories without limits have memory.events. bare reports that
	// they have no controllers, so what an attempt has used or set cannot affect the next
	// one.
	memory, bare bool
	next         atomic.Int64
	mu           sync.Mutex
	// idle holds the directories without limits, and those with limits.
	idle    [2][]*cgroupDir
	orphans *procfs.OrphanReaper
	strays  *strays
	// leaves reports that attempts can be left to a later worker, and left that one has been.
	leaves bool
	left   atomic.Bool
}

func newCgroups(guard *watchdog, leaves bool, logger *slog.Logger) (*cgroupFactory, error) {
	base, err := cgroup.Own()
	if err != nil {
		return nil, err
	}
	c := &cgroupFactory{guard: guard, leaves: leaves, strays: newStrays(logger)}
	if c.parent, c.undelegated, err = cgroup.NewDelegatedParent(base); err != nil {
		return nil, err
	}
	c.delegated = c.undelegated == nil
	c.orphans = procfs.Orphans.Open()
	if err := c.probe(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// probe forks a process in a cgroup. Permission to create directories does not imply
// permission to put processes there, and old kernels and seccomp filters lack some of the
// calls.
func (c *cgroupFactory) probe() error {
	t, err := c.enclose("", executor.Ending{}, executor.Limits{})
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(t.(*cgroupTree).path, "cgroup.kill")); err != nil {
		return errors.Join(err, t.end())
	}
	_, err = os.Stat(filepath.Join(t.(*cgroupTree).path, "memory.events"))
	c.memory = err == nil
	controllers, err := os.ReadFile(filepath.Join(t.(*cgroupTree).path, "cgroup.controllers"))
	c.bare = err == nil && len(bytes.TrimSpace(controllers)) == 0
	// This program cannot exist. The kernel reports that only once the new process is in
	// its cgroup, with an error that no earlier step returns.
	_, err = os.StartProcess("/dev/null/probe", []string{"probe"}, &os.ProcAttr{Env: []string{}, Sys: t.attr()})
	if !errors.Is(err, unix.ENOTDIR) {
		return errors.Join(fmt.Errorf("start a process in a cgroup: %w", err), t.end())
	}
	return t.end()
}

func (c *cgroupFactory) mechanism() Mechanism { return Cgroup }

func (c *cgroupFactory) close() error {
	c.strays.close()
	defer c.orphans.Close()
	if c.left.Load() {
		var errs []error
		for _, d := range slices.Concat(c.idle[0], c.idle[1]) {
			errs = append(errs, d.remove())
		}
		return errors.Join(append(errs, c.parent.Leave())...)
	}
	for _, d := range slices.Concat(c.idle[0], c.idle[1]) {
		d.close()
	}
	return c.parent.Remove()
}

func (c *cgroupFactory) enclose(id string, e executor.Ending, l executor.Limits) (tree, error) {
	if !c.delegated {
		l = executor.Limits{} // bounds enforces them instead
	}
	g := &cgroupTree{all: c, id: id, ending: e, limits: l}
	if err := g.enter(); err != nil {
		return nil, err
	}
	return g, nil
}

// cgroupTree is the process tree of one attempt or of a batch, held in a cgroup.
type cgroupTree struct {
	all *cgroupFactory
	// id is the id of the attempt or of the batch.
	id string
	// cgroupDir is nil once the tree has ended.
	*cgroupDir
	leader int
	// killed reports that the directory may have been killed as a whole. At any later
	// time, Linux may then also kill what is forked into it from outside.
	killed bool
	// oomKills is the count of OOM kills before the current program.
	oomKills int
	// ending has the lease that the watchdog tracks for the tree, or nil, and how the processes are stopped.
	ending executor.Ending
	// limits are the limits of the directory.
	limits executor.Limits
	// parent is the parent of the directory if another worker has made both, else nil.
	parent *cgroup.Parent
}

// enter takes a directory and registers it with the watchdog.
func (c *cgroupTree) enter() (err error) {
	c.killed, c.oomKills = false, 0
	if c.cgroupDir, err = c.all.acquireDir(c.limits); err != nil {
		return err
	}
	c.all.strays.noteBegin(c.id)
	c.oomKills = c.countOOMKills()
	if c.ending.Lease == nil {
		return nil
	}
	if err := c.all.guard.add(c.name, c.ending); err != nil {
		return errors.Join(err, c.end())
	}
	return nil
}

func (c *cgroupTree) attr() *syscall.SysProcAttr {
	a := sessionAttr(c.all.leaves)
	a.UseCgroupFD, a.CgroupFD = true, c.fd
	return a
}

func (c *cgroupTree) started(pid int) {
	c.leader = pid
	c.all.orphans.Exclude(pid)
}

func (c *cgroupTree) admit(start func() (*os.Process, error)) (*os.Process, error) {
	process, err := start()
	if err == nil {
		c.all.orphans.Exclude(process.Pid)
	}
	return process, err
}

func (c *cgroupTree) dismiss(pid int) { c.all.orphans.Include(pid) }

// terminate signals the process group first, in one step that misses no child which is
// just being forked, and then the processes that have left the group.
func (c *cgroupTree) terminate() {
	if c.ending.Lease != nil {
		c.all.guard.noteStopping(c.name)
	}
	signal := stopSignal(c.ending)
	signalGroup(c.leader, signal)
	for _, pid := range c.pids() {
		if group, err := unix.Getpgid(pid); err == nil && group != c.leader {
			_ = unix.Kill(pid, signal)
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	}
}

func (c *cgroupTree) kill() {
	c.killed = true
	_ = cgroup.Kill(c.path)
}

func (c *cgroupTree) pids() []int { return cgroup.PIDs(c.path) }

func (c *cgroupTree) oomKilled() bool { return c.countOOMKills() > c.oomKills }

func (c *cgroupTree) countOOMKills() int {
	if !c.all.memory && !c.limited {
		return 0
	}
	events, err := os.ReadFile(filepath.Join(c.path, "memory.events"))
	if err != nil {
		return 0
	}
	return max(cgroup.Count(events, "oom_kill"), 0)
}

func (c *cgroupTree) noteSIGKILL() { c.killed = true }

func (c *cgroupTree) next() error {
	c.all.orphans.Include(c.leader)
	c.leader = 0
	if !c.killed {
		c.oomKills = c.countOOMKills()
		return nil
	}
	return errors.Join(c.end(), c.enter())
}

func (c *cgroupTree) join() string { return filepath.Join(c.path, "cgroup.procs") }

func (c *cgroupTree) isEmpty() bool { return !c.isPopulated() }

func (c *cgroupTree) clear() error {
	killed := false
	return poll.Until(func() bool {
		if c.isEmpty() {
			return true
		}
		if !killed {
			c.killed, killed = true, cgroup.Kill(c.path) == nil
		}
		return false
	}, func() error { return fmt.Errorf("cgroup %s: processes %v survive SIGKILL", c.path, c.pids()) })
}

func (c *cgroupTree) end() error {
	if c.cgroupDir == nil {
		return nil
	}
	err := c.clear()
	c.all.strays.noteEnd(c.id)
	c.all.orphans.Include(c.leader)
	c.all.orphans.Reap()
	if c.ending.Lease != nil {
		c.all.guard.remove(c.name)
	}
	dir := c.cgroupDir
	c.cgroupDir = nil
	switch {
	case err != nil:
		dir.close()
		return err
	case c.parent != nil:
		return errors.Join(dir.remove(), c.parent.Leave())
	case c.killed:
		return dir.remove()
	}
	return c.all.releaseDir(dir, c.ending.Lease)
}

package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/poll"
)

// maxIdle bounds the number of directories that are kept for later attempts.
const maxIdle = 64

// cgroupDir is a cgroup directory for the processes of an attempt.
type cgroupDir struct {
	name, path string
	fd         int
	// events is the open file cgroup.events.
	events *os.File
	// limited reports that the directory has the controllers for limits.
	limited bool
}

// acquireDir returns a directory without processes. It prefers an idle directory, since creating and
// removing one costs a tenth of a short task.
func (c *cgroupFactory) acquireDir(l executor.Limits) (*cgroupDir, error) {
	limited := l != (executor.Limits{})
	d := c.reuse(limited)
	if d == nil {
		var err error
		if d, err = c.makeDir(limited); err != nil {
			return nil, err
		}
	}
	if limited {
		if err := d.limit(l); err != nil {
			return nil, errors.Join(fmt.Errorf("set limits: %w", err), d.remove())
		}
	}
	return d, nil
}

func (c *cgroupFactory) reuse(limited bool) *cgroupDir {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.idleOf(limited)
	last := len(*idle) - 1
	if last < 0 {
		return nil
	}
	d := (*idle)[last]
	*idle = (*idle)[:last]
	return d
}

func (c *cgroupFactory) idleOf(limited bool) *[]*cgroupDir {
	if limited {
		return &c.idle[1]
	}
	return &c.idle[0]
}

func (c *cgroupFactory) makeDir(limited bool) (*cgroupDir, error) {
	name := strconv.FormatInt(c.next.Add(1), 10)
	switch {
	case limited:
		name = cgroup.LimitedDir + "/" + name
	case c.delegated:
		name = cgroup.FreeDir + "/" + name
	}
	d := &cgroupDir{name: name, path: filepath.Join(c.parent.Path, name), limited: limited}
	if err := unix.Mkdirat(c.parent.FD, name, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	var err error
	if d.fd, err = unix.Openat(c.parent.FD, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		if d.events, err = os.Open(filepath.Join(d.path, "cgroup.events")); err != nil {
			unix.Close(d.fd)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open cgroup: %w", err), unix.Unlinkat(c.parent.FD, name, unix.AT_REMOVEDIR))
	}
	return d, nil
}

// releaseDir keeps an empty directory for later attempts, or removes it.
func (c *cgroupFactory) releaseDir(d *cgroupDir, lease *executor.Lease) error {
	if (c.bare || d.limited && d.noFilesInMemory()) && !lease.Lost() && d.isUntouched() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if idle := c.idleOf(d.limited); len(*idle) < maxIdle {
			*idle = append(*idle, d)
			return nil
		}
	}
	return d.remove()
}

// limit writes all limits, including those that an earlier privileged attempt may have changed.
func (d *cgroupDir) limit(l executor.Limits) error {
	for _, s := range cgroup.SettingsV2(l) {
		err := os.WriteFile(filepath.Join(d.path, s.File), []byte(s.Value), 0)
		if err != nil && !(s.Optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// noFilesInMemory reports whether the next attempt would see no trace of an earlier one. Files that
// an attempt leaves in a memory file system are charged as long as they exist.
func (d *cgroupDir) noFilesInMemory() bool {
	stat, err := os.ReadFile(filepath.Join(d.path, "memory.stat"))
	return err == nil && cgroup.Count(stat, "shmem") == 0
}

// close closes the files of the directory, which is removed together with its parent.
func (d *cgroupDir) close() {
	unix.Close(d.fd)
	d.events.Close()
}

func (d *cgroupDir) remove() error {
	d.close()
	var err error
	return poll.Until(func() bool {
		err = cgroup.Remove(d.path)
		return err == nil
	}, func() error { return err })
}

// state returns a number from cgroup.events, or -1 if it is missing.
func (d *cgroupDir) state(name string) int {
	var text [256]byte
	n, err := d.events.ReadAt(text[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return -1
	}
	return cgroup.Count(text[:n], name)
}

// isPopulated reports whether a process is in or below the directory. A directory that another
// process has removed is not populated.
func (d *cgroupDir) isPopulated() bool {
	switch d.state("populated") {
	case 0:
		return false
	case 1:
		return true
	}
	_, err := os.Stat(d.path)
	return !errors.Is(err, fs.ErrNotExist)
}

// isUntouched reports whether the attempt has neither created cgroups below the directory nor frozen
// it.
func (d *cgroupDir) isUntouched() bool {
	var stat unix.Stat_t
	return unix.Fstat(d.fd, &stat) == nil && stat.Nlink == 2 && d.state("frozen") == 0
}

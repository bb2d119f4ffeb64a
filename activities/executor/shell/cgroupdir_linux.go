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
)

// maxIdle bounds the directories that are kept for later attempts.
const maxIdle = 64

// cgroupDir is a directory for the processes of an attempt.
type cgroupDir struct {
	name, path string
	fd         int
	// events is the open file cgroup.events.
	events *os.File
}

// take returns a directory without processes: one that is idle, since making and
// removing one costs a tenth of a short task, or a new one.
func (c *cgroups) take() (*cgroupDir, error) {
	c.mu.Lock()
	if last := len(c.idle) - 1; last >= 0 {
		d := c.idle[last]
		c.idle = c.idle[:last]
		c.mu.Unlock()
		return d, nil
	}
	c.mu.Unlock()
	name := strconv.FormatInt(c.next.Add(1), 10)
	d := &cgroupDir{name: name, path: filepath.Join(c.parent.path, name)}
	if err := unix.Mkdirat(c.parent.fd, name, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	var err error
	if d.fd, err = unix.Openat(c.parent.fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		if d.events, err = os.Open(filepath.Join(d.path, "cgroup.events")); err != nil {
			unix.Close(d.fd)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open cgroup: %w", err), unix.Unlinkat(c.parent.fd, name, unix.AT_REMOVEDIR))
	}
	return d, nil
}

// giveBack keeps a directory without processes for later, or removes it.
func (c *cgroups) giveBack(d *cgroupDir, lease *executor.Lease) error {
	if c.bare && !lease.Lost() && d.untouched() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.idle) < maxIdle {
			c.idle = append(c.idle, d)
			return nil
		}
	}
	return d.remove()
}

// close leaves the directory to whoever removes those of all attempts.
func (d *cgroupDir) close() {
	unix.Close(d.fd)
	d.events.Close()
}

func (d *cgroupDir) remove() error {
	d.close()
	var err error
	return until(func() bool {
		err = removeCgroup(d.path)
		return err == nil
	}, func() error { return err })
}

// state reads a number from cgroup.events, -1 when it is not there.
func (d *cgroupDir) state(name string) int {
	var text [256]byte
	n, err := d.events.ReadAt(text[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return -1
	}
	return countOf(text[:n], name)
}

// populated tells whether a process is in or below the directory. One that somebody
// else has removed has none.
func (d *cgroupDir) populated() bool {
	switch d.state("populated") {
	case 0:
		return false
	case 1:
		return true
	}
	_, err := os.Stat(d.path)
	return !errors.Is(err, fs.ErrNotExist)
}

// untouched tells whether the attempt has neither made cgroups of its own below the
// directory nor frozen it.
func (d *cgroupDir) untouched() bool {
	var stat unix.Stat_t
	return unix.Fstat(d.fd, &stat) == nil && stat.Nlink == 2 && d.state("frozen") == 0
}

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor/shell/poll"
)

// ParentPrefix is the prefix of the names of all parents.
const ParentPrefix = "switchyard-"

// parentName matches the names of parents. Other cgroups may have the prefix, too, such as that of a service.
var parentName = regexp.MustCompile(`^` + ParentPrefix + `[0-9]+-[0-9]+$`)

// Parent is the directory that holds the directories of all attempts, named "switchyard-<pid>-<random>". A live
// process holds a lock on its own parent, which distinguishes it from dead ones even across PID namespaces.
type Parent struct {
	Path string
	FD   int
	dir  *os.File
}

// NewParent creates a parent below a directory and locks it.
func NewParent(base string) (*Parent, error) {
	// Before the lock is taken, another process may mistake the new directory for a stale one and remove it.
	for range 10 {
		path, err := os.MkdirTemp(base, ParentPrefix+strconv.Itoa(os.Getpid())+"-")
		if err != nil {
			return nil, err
		}
		dir, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), Remove(path))
		}
		if _, err := os.Stat(path); err == nil {
			return &Parent{Path: path, FD: int(dir.Fd()), dir: dir}, nil
		}
		dir.Close()
	}
	return nil, fmt.Errorf("%s: another process keeps removing new cgroups", base)
}

// Remove kills all processes below the parent and removes it.
func (p *Parent) Remove() error {
	return errors.Join(Clear(p.Path), p.dir.Close())
}

// Clear kills all processes in and below a directory and removes it.
func Clear(path string) error {
	if err := Kill(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Remove(path)
		}
		return err
	}
	var err error
	return poll.Until(func() bool {
		err = Remove(path)
		return err == nil
	}, func() error { return err })
}

// RemoveStale kills and removes what is left by processes that were killed together with their watchdog.
func RemoveStale(base string) {
	paths, _ := filepath.Glob(filepath.Join(base, ParentPrefix+"*"))
	for _, path := range paths {
		if !parentName.MatchString(filepath.Base(path)) {
			continue
		}
		dir, err := os.Open(path)
		if err != nil {
			continue
		}
		if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = Clear(path)
		}
		dir.Close()
	}
}

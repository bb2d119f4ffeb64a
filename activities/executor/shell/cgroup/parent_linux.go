package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	// emptied is the directory that this process has left so that it can have controllers, or "".
	emptied string
}

// InService reports whether the limits below the parent keep processes out of the cgroup that this process was started in, such as
// that of a service.
func (p *Parent) InService() bool { return p.emptied != "" }

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

// RemoveEmpty removes a parent that holds no directory of an attempt, not even one without processes.
func RemoveEmpty(path string) {
	for _, dir := range []string{filepath.Join(path, FreeDir), filepath.Join(path, LimitedDir), path} {
		_ = unix.Rmdir(dir) // a directory with others below it stays
	}
}

// Leave lets go of the parent. It keeps the directories of attempts. Those must have no limits if InService is true: Leave
// then makes the cgroup of the service accept processes again.
func (p *Parent) Leave() error {
	RemoveEmpty(p.Path)
	if p.emptied != "" {
		for _, dir := range []string{filepath.Join(p.Path, LimitedDir), p.Path, p.emptied} {
			_ = disableControllers(dir) // one that is still needed stays
		}
	}
	return p.dir.Close()
}

// Adopt returns a parent that another process has made and left, by its path and its open directory, which holds the lock.
func Adopt(path string, dir *os.File) *Parent {
	return &Parent{Path: path, FD: int(dir.Fd()), dir: dir}
}

// Lock returns the open directory of the parent, which holds the lock as long as a process has it open.
func (p *Parent) Lock() *os.File { return p.dir }

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

// ClearExcept kills all processes in and below a directory, except in the directories in keep and below them. It removes what it can.
func ClearExcept(path string, keep []string) error {
	if !slices.ContainsFunc(keep, func(k string) bool { return strings.HasPrefix(k+"/", path+"/") }) {
		return Clear(path)
	}
	if slices.Contains(keep, path) {
		return nil
	}
	entries, err := os.ReadDir(path)
	errs := []error{err}
	for _, entry := range entries {
		if entry.IsDir() {
			errs = append(errs, ClearExcept(filepath.Join(path, entry.Name()), keep))
		}
	}
	return errors.Join(errs...)
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

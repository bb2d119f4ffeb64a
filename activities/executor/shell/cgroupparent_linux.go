package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const parentPrefix = "switchyard-"

// cgroupParent is the directory that holds those of all attempts, named
// "switchyard-<pid>-<random>". Whoever lives holds a lock on its own; that
// tells the dead from the living also across pid namespaces.
type cgroupParent struct {
	path string
	fd   int
	dir  *os.File
}

func newCgroupParent(base string) (*cgroupParent, error) {
	// Between making and locking it, another process may take it for stale.
	for range 10 {
		path, err := os.MkdirTemp(base, parentPrefix+strconv.Itoa(os.Getpid())+"-")
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
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), removeCgroup(path))
		}
		if _, err := os.Stat(path); err == nil {
			return &cgroupParent{path: path, fd: int(dir.Fd()), dir: dir}, nil
		}
		dir.Close()
	}
	return nil, fmt.Errorf("%s: new cgroups are taken away", base)
}

// remove ends all that is left below and removes the directory.
func (p *cgroupParent) remove() error {
	return errors.Join(clearCgroup(p.path), p.dir.Close())
}

// clearCgroup ends all processes in and below a directory and removes it.
func clearCgroup(path string) error {
	if err := killCgroup(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return removeCgroup(path)
		}
		return err
	}
	var err error
	return until(func() bool {
		err = removeCgroup(path)
		return err == nil
	}, func() error { return err })
}

// removeStale ends and removes what processes have left that were killed
// together with their watchdog.
func removeStale(base string) {
	paths, _ := filepath.Glob(filepath.Join(base, parentPrefix+"*"))
	for _, path := range paths {
		dir, err := os.Open(path)
		if err != nil {
			continue
		}
		if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = clearCgroup(path)
		}
		dir.Close()
	}
}

package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// FreeDir and LimitedDir hold the directories of attempts without and with limits,
	// if controllers are available.
	FreeDir, LimitedDir = "free", "limited"
	// workerDir is where this process goes to.
	workerDir = "worker.switchyard"
)

// NewDelegatedParent makes the parent of the directories of attempts: where this process is, in own, or in the root of cgroup2 if
// controllers are available only there. undelegated is why they are available in neither, or nil.
func NewDelegatedParent(own string) (parent *Parent, undelegated, err error) {
	bases := []string{own}
	if root, err := Root(); err == nil && root != own {
		bases = append(bases, root)
	}
	for _, base := range bases {
		RemoveStale(base)
		parent, err := NewParent(base)
		if err != nil {
			undelegated = errors.Join(undelegated, err)
			continue
		}
		if err = parent.delegate(base); err == nil {
			return parent, nil, nil
		}
		undelegated = errors.Join(undelegated, err, parent.Remove())
	}
	parent, err = NewParent(own)
	return parent, undelegated, err
}

// root is the root of cgroup2, where directories have controllers although
// there are processes beside them. That of a cgroup namespace is none.
func Root() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	root, err := Find(string(mounts), "0::/\n", "")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(root, "cgroup.type")); err == nil {
		return "", fmt.Errorf("%s is not the root", root)
	}
	return root, nil
}

// delegate makes the controllers available below the parent. cgroup2 gives none to
// directories beside which there are processes, so that this process, if it is alone where
// it is, as a service with Delegate=yes, moves to a directory below.
func (p *Parent) delegate(base string) error {
	if err := enableControllers(base); errors.Is(err, unix.EBUSY) {
		if err := moveBelow(base); err != nil {
			return err
		}
		if err := enableControllers(base); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := enableControllers(p.Path); err != nil {
		return err
	}
	for _, name := range []string{FreeDir, LimitedDir} {
		if err := unix.Mkdirat(p.FD, name, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
	}
	return enableControllers(filepath.Join(p.Path, LimitedDir))
}

// enableControllers gives what lies below a directory its controllers.
func enableControllers(dir string) error {
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, controller := range Controllers {
		if contains(enabled, controller) {
			continue
		}
		if !contains(has, controller) {
			return fmt.Errorf("cgroup2 has no %s controller at %s", controller, dir)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("enable the %s controller of cgroup2: %w", controller, err)
		}
	}
	return nil
}

func contains(list []byte, word string) bool {
	return slices.ContainsFunc(bytes.Fields(list), func(w []byte) bool { return string(w) == word })
}

// moveBelow moves this process out of a directory in which there is no other.
func moveBelow(base string) error {
	text, err := os.ReadFile(filepath.Join(base, "cgroup.procs"))
	if err != nil {
		return err
	}
	self := strconv.Itoa(os.Getpid())
	for _, pid := range bytes.Fields(text) {
		if string(pid) != self {
			return fmt.Errorf("cgroup %s, where the worker is, holds other processes; run the worker as a service with Delegate=yes", base)
		}
	}
	below := filepath.Join(base, workerDir)
	if err := os.Mkdir(below, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.WriteFile(filepath.Join(below, "cgroup.procs"), []byte(self), 0)
}

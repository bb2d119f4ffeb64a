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
	// FreeDir and LimitedDir hold the directories of attempts without and with limits, if controllers are available.
	FreeDir, LimitedDir = "free", "limited"
	// workerDir is the directory that this process moves to.
	workerDir = "worker.switchyard"
)

// NewDelegatedParent creates the parent of the attempts' directories. The parent is in own, the directory of this process, or in
// the root of cgroup2 if controllers are available only there. undelegated is the reason if they are available in neither.
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

// Root returns the root of cgroup2, where directories may have controllers although there are processes beside them. It returns
// an error for the root of a cgroup namespace, which is not exempt.
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

// delegate enables the controllers below the parent. cgroup2 refuses controllers to directories that have processes beside them.
// So this process moves to a directory below, if it is alone in its own, as in a service with Delegate=yes.
func (p *Parent) delegate(base string) error {
	if err := enableControllers(base); errors.Is(err, unix.EBUSY) {
		if err := moveBelow(base); err != nil {
			return err
		}
		p.emptied = base
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

// enableControllers enables a directory's controllers for the directories below it.
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

// disableControllers disables the controllers of a directory for the directories below it.
func disableControllers(dir string) error {
	var errs []error
	for _, controller := range Controllers {
		errs = append(errs, os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("-"+controller), 0))
	}
	return errors.Join(errs...)
}

func contains(list []byte, word string) bool {
	return slices.ContainsFunc(bytes.Fields(list), func(w []byte) bool { return string(w) == word })
}

// moveBelow moves this process to a directory below base, provided that base holds no other process.
func moveBelow(base string) error {
	text, err := os.ReadFile(filepath.Join(base, "cgroup.procs"))
	if err != nil {
		return err
	}
	self := strconv.Itoa(os.Getpid())
	for _, pid := range bytes.Fields(text) {
		if string(pid) != self {
			return fmt.Errorf("the worker's cgroup %s contains other processes; run the worker as a service with Delegate=yes", base)
		}
	}
	below := filepath.Join(base, workerDir)
	if err := os.Mkdir(below, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.WriteFile(filepath.Join(below, "cgroup.procs"), []byte(self), 0)
}

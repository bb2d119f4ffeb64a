package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Inspect returns where NewDelegatedParent would create a parent with controllers, or why it could not. It changes nothing.
func Inspect() (base string, err error) {
	own, err := Own()
	if err != nil {
		return "", err
	}
	bases := []string{own}
	root, rootErr := Root()
	if rootErr == nil && root != own {
		bases = append(bases, root)
	}
	for _, base := range bases {
		baseErr := inspect(base, base == root)
		if baseErr == nil {
			return base, nil
		}
		err = errors.Join(err, baseErr)
	}
	return "", err
}

func inspect(base string, isRoot bool) error {
	has, err := os.ReadFile(filepath.Join(base, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range Controllers {
		if !contains(has, controller) {
			return fmt.Errorf("cgroup2 has no %s controller at %s", controller, base)
		}
	}
	for _, path := range []string{base, filepath.Join(base, "cgroup.subtree_control")} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return fmt.Errorf("%s is not delegated to this user: %w", path, err)
		}
	}
	if others := slices.DeleteFunc(PIDs(base), func(pid int) bool { return pid == os.Getpid() }); !isRoot && len(others) > 0 {
		return fmt.Errorf("%s also holds other processes", base)
	}
	return nil
}

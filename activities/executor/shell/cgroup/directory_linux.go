package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Kill kills all processes in and below a directory, including new forks.
func Kill(path string) error {
	f, err := os.OpenFile(filepath.Join(path, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("1")
	return errors.Join(err, f.Close())
}

// PIDs returns the processes in and below a directory.
func PIDs(path string) []int {
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

// Remove removes a directory and those below it. None may hold a process.
func Remove(path string) error {
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

// Count returns the number for a name in a file of "name number" lines, or -1 if the name is missing.
func Count(text []byte, name string) int {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			if n, err := strconv.Atoi(string(bytes.TrimSpace(value))); err == nil {
				return n
			}
		}
	}
	return -1
}

// Freeze suspends all processes in and below a directory, or resumes them.
func Freeze(path string, frozen bool) error {
	value := "0"
	if frozen {
		value = "1"
	}
	return os.WriteFile(filepath.Join(path, "cgroup.freeze"), []byte(value), 0)
}

// IsFrozen reports whether all processes in and below a directory are suspended.
func IsFrozen(path string) bool {
	events, err := os.ReadFile(filepath.Join(path, "cgroup.events"))
	return err == nil && Count(events, "frozen") == 1
}

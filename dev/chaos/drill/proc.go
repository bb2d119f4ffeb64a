package drill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// processesWith returns the live processes with the given entry in their environment. Zombies have no environment.
func processesWith(entry string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	var found []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		// A process that has ended meanwhile, or belongs to another user, is skipped.
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(e []byte) bool { return string(e) == entry }) {
			found = append(found, pid)
		}
	}
	return found
}

// isStopped reports whether every thread of a process is stopped, as after SIGSTOP once its calls of the system have returned.
func isStopped(pid int) (bool, error) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is valid
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		if state := stat[bytes.LastIndexByte(stat, ')')+2]; state != 'T' {
			return false, nil
		}
	}
	return true, nil
}

package drill

import (
	"bytes"
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

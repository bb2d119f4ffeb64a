package drill

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// processesWith returns the live processes that have an entry in their
// environment. Zombies have none.
func processesWith(entry string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	var found []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		// A process that has ended meanwhile, or is another user's, is none of ours.
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(e []byte) bool { return string(e) == entry }) {
			found = append(found, pid)
		}
	}
	return found
}

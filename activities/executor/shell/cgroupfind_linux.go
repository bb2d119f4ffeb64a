package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ownCgroup is the directory of this process in the cgroup2 file system, which
// may be one of several where older hierarchies are mounted, too.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	return findCgroup(string(mounts), string(groups))
}

// findCgroup takes the texts of /proc/self/mountinfo and /proc/self/cgroup, for
// which see proc_pid_mountinfo(5) and cgroups(7).
func findCgroup(mounts, groups string) (string, error) {
	var path string
	for line := range strings.Lines(groups) {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSuffix(p, "\n")
		}
	}
	if path == "" || path == "/.." || strings.HasPrefix(path, "/../") {
		return "", errors.New("this process is in no cgroup2 hierarchy, or outside of the part that it sees")
	}
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		// A container may see only a part of the hierarchy: then the mount's
		// root is that part's path.
		relative, err := filepath.Rel(unescape(fields[3]), path)
		if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
			continue
		}
		return filepath.Join(unescape(fields[4]), relative), nil
	}
	return "", fmt.Errorf("no mounted cgroup2 file system holds %s", path)
}

// unescape undoes the octal escapes of mountinfo, such as \040 for a space.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, `\`)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		s = after
		if len(after) >= 3 {
			if code, err := strconv.ParseUint(after[:3], 8, 8); err == nil {
				b.WriteByte(byte(code))
				s = after[3:]
				continue
			}
		}
		b.WriteByte('\\')
	}
}

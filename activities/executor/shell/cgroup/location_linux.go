package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Own returns the directory of this process in the cgroup2 file system. Older
// hierarchies may be mounted beside it.
func Own() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	dir, err := Find(string(mounts), string(groups), "")
	if filepath.Base(dir) == workerDir {
		dir = filepath.Dir(dir) // see moveBelow
	}
	return dir, err
}

// Find returns the directory of this process in cgroup2, or with a controller in the
// cgroup v1 hierarchy that has this controller. mounts and groups are the texts of
// /proc/self/mountinfo and /proc/self/cgroup, see proc_pid_mountinfo(5) and
// cgroups(7).
func Find(mounts, groups, controller string) (string, error) {
	kind, path := "cgroup2", ""
	if controller != "" {
		kind = "cgroup"
	}
	for line := range strings.Lines(groups) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		list, p, ok := strings.Cut(rest, ":")
		if ok && (controller != "" || id == "0") && slices.Contains(strings.Split(list, ","), controller) {
			path = p
		}
	}
	if path == "" || path == "/.." || strings.HasPrefix(path, "/../") {
		return "", fmt.Errorf("this process is in no %s hierarchy%s that is visible to it", kind, controllerSuffix(controller))
	}
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		source := strings.Fields(after)
		if !ok || len(fields) < 5 || len(source) == 0 || source[0] != kind {
			continue
		}
		if controller != "" && !slices.Contains(strings.Split(source[len(source)-1], ","), controller) {
			continue
		}
		// A container may see only a part of the hierarchy. The root of the mount is
		// then the path of that part.
		relative, err := filepath.Rel(unescape(fields[3]), path)
		if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
			continue
		}
		return filepath.Join(unescape(fields[4]), relative), nil
	}
	return "", fmt.Errorf("no mounted %s file system%s holds %s", kind, controllerSuffix(controller), path)
}

func controllerSuffix(controller string) string {
	if controller == "" {
		return ""
	}
	return " with " + controller
}

// unescape replaces the octal escapes of mountinfo, such as \040 for a space.
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

package qemu

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
)

// groupPrefix is the name prefix of machine cgroups. It keeps the shell executor from taking them for those of dead
// workers.
const groupPrefix = "switchyard-vm-"

// group is the cgroup of a machine's processes. It may be nil.
type group struct {
	path string
	dir  *os.File
}

// newGroup creates a cgroup beside that of this process and sets the limits for which it has controllers. It returns
// nil if no cgroup can be created: the machine is bounded by its processors and its memory in any case.
func newGroup(name string, l executor.Limits) *group {
	base, err := cgroup.Own()
	if err != nil {
		return nil
	}
	path := filepath.Join(base, groupPrefix+name)
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		_ = os.Remove(path)
		return nil
	}
	available, _ := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	for _, s := range cgroup.SettingsV2(l) {
		if strings.Contains(" "+strings.TrimSpace(string(available))+" ", " "+s.Controller+" ") {
			_ = os.WriteFile(filepath.Join(path, s.File), []byte(s.Value), 0)
		}
	}
	return &group{path: path, dir: dir}
}

// attributes returns the attributes that start a process in the group and in a session of its own.
func (g *group) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if g != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(g.dir.Fd())
	}
	return a
}

// close releases the group without ending its processes.
func (g *group) close() {
	if g != nil {
		_ = g.dir.Close()
	}
}

// directory returns the path of the group, or "".
func (g *group) directory() string {
	if g == nil {
		return ""
	}
	return g.path
}

// clearGroup kills all processes of a group and removes it.
func clearGroup(path string) error {
	if path == "" || !strings.HasPrefix(filepath.Base(path), groupPrefix) {
		return nil
	}
	if err := cgroup.Clear(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// hasRunOutOfMemory reports whether the kernel has killed a process of a group for lack of memory.
func hasRunOutOfMemory(path string) bool {
	if path == "" {
		return false
	}
	events, err := os.ReadFile(filepath.Join(path, "memory.events"))
	return err == nil && cgroup.Count(events, "oom_kill") > 0
}

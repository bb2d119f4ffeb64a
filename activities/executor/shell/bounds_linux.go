package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/forker"
	"switchyard/activities/executor/shell/poll"
)

// bounds enforces limits on attempts. With cgroup2 the directory of an attempt enforces
// them, and bounds has nothing to do. With cgroup v1 each controller is a hierarchy with
// directories of its own, and bounds creates these.
type bounds struct {
	// inTree reports that process trees enforce limits by themselves.
	inTree bool
	// bases maps controllers to this process's own directories. unable is the reason if
	// there are none.
	bases  map[string]string
	unable error

	mu      sync.Mutex
	parents map[string]*cgroup.Parent
	made    int
	// idle holds the bounds with only the memory controller, and those with all
	// controllers.
	idle [2][]*bound
}

func newBounds(t treeFactory) *bounds {
	b := &bounds{bases: make(map[string]string), parents: make(map[string]*cgroup.Parent)}
	c, inCgroups := t.(*cgroupFactory)
	if inCgroups && c.delegated {
		b.inTree = true
		return b
	}
	b.unable = b.find()
	if b.unable != nil && inCgroups {
		b.unable = errors.Join(c.undelegated, b.unable)
	}
	return b
}

// find locates the hierarchies of cgroup v1.
func (b *bounds) find() error {
	if old, err := olderThan(5, 4); err != nil || old {
		// The kernel could kill the worker for the memory use of its tasks, since the
		// thread of an in-cgroup forker is in the task's memory cgroup.
		return errors.Join(errors.New("limits with cgroup v1 need Linux 5.4 or newer"), err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	for _, controller := range cgroup.Controllers {
		base, err := cgroup.Find(string(mounts), string(groups), controller)
		if err == nil {
			err = unix.Access(base, unix.W_OK)
		}
		if err != nil {
			return fmt.Errorf("cannot create cgroups of the %s controller: %w", controller, err)
		}
		b.bases[controller] = base
	}
	return nil
}

// bound is a set of directories of cgroup v1 with limits. A nil bound imposes none.
type bound struct {
	all   *bounds
	name  string
	paths map[string]string
	// inside forks into the memory directory. It is nil until it is needed.
	inside *forker.Forker
	// oomKills is the count of OOM kills before the program started.
	oomKills int
}

// validate returns nil if limits can be enforced, or the reason why not.
func (b *bounds) validate() error { return b.unable }

// acquire returns a bound that enforces limits, or nil if the process tree enforces them or
// there are none. If whole is false, the bound limits only memory, and the caller starts
// programs with the bound's forker.
func (b *bounds) acquire(l executor.Limits, whole bool) (*bound, error) {
	if b.inTree || l == (executor.Limits{}) {
		return nil, nil
	}
	if b.unable != nil {
		return nil, b.unable
	}
	d, err := b.reuseOrCreate(whole)
	if err != nil {
		return nil, err
	}
	if err := d.set(l); err != nil {
		return nil, errors.Join(fmt.Errorf("set limits: %w", err), d.remove())
	}
	d.resetOOMKills()
	if !whole && d.inside == nil {
		if d.inside, err = forker.NewInCgroup(filepath.Join(d.paths["memory"], "tasks")); err != nil {
			return nil, errors.Join(err, d.remove())
		}
	}
	return d, nil
}

func (b *bounds) reuseOrCreate(whole bool) (*bound, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted, idle := cgroup.Controllers[:1], &b.idle[0]
	if whole {
		wanted, idle = cgroup.Controllers[:], &b.idle[1]
	}
	if last := len(*idle) - 1; last >= 0 {
		d := (*idle)[last]
		*idle = (*idle)[:last]
		return d, nil
	}
	b.made++
	d := &bound{all: b, name: strconv.Itoa(b.made), paths: make(map[string]string)}
	for _, controller := range wanted {
		parent := b.parents[controller]
		if parent == nil {
			cgroup.RemoveStale(b.bases[controller])
			var err error
			if parent, err = cgroup.NewParent(b.bases[controller]); err != nil {
				return nil, errors.Join(err, d.remove())
			}
			b.parents[controller] = parent
		}
		path := filepath.Join(parent.Path, d.name)
		if err := os.Mkdir(path, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("make cgroup: %w", err), d.remove())
		}
		d.paths[controller] = path
	}
	return d, nil
}

// close removes the remaining directories. No bound may be in use.
func (b *bounds) close() error {
	var errs []error
	for _, d := range slices.Concat(b.idle[0], b.idle[1]) {
		errs = append(errs, d.remove())
	}
	for _, controller := range slices.Sorted(maps.Keys(b.parents)) {
		errs = append(errs, b.parents[controller].Remove())
	}
	return errors.Join(errs...)
}

// set writes the limits. 0 removes a limit.
func (d *bound) set(l executor.Limits) error {
	for _, s := range cgroup.SettingsV1(l) {
		path, ok := d.paths[s.Controller]
		if !ok {
			continue
		}
		err := os.WriteFile(filepath.Join(path, s.File), []byte(s.Value), 0)
		if err != nil && !(s.Optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// joins returns the files to which a process writes "0" to enter the bound.
func (d *bound) joins() []string {
	if d == nil {
		return nil
	}
	var files []string
	for _, controller := range slices.Sorted(maps.Keys(d.paths)) {
		files = append(files, filepath.Join(d.paths[controller], "cgroup.procs"))
	}
	return files
}

// forker returns the forker that starts programs inside the bound, or nil if the programs
// enter it by themselves.
func (d *bound) forker() *forker.Forker {
	if d == nil {
		return nil
	}
	return d.inside
}

// resetOOMKills resets the count of OOM kills.
func (d *bound) resetOOMKills() {
	if d != nil {
		d.oomKills = d.countOOMKills()
	}
}

// oomKilled reports whether the kernel has killed a process for its memory use since
// begin.
func (d *bound) oomKilled() bool { return d != nil && d.countOOMKills() > d.oomKills }

func (d *bound) countOOMKills() int {
	text, err := os.ReadFile(filepath.Join(d.paths["memory"], "memory.oom_control"))
	if err != nil {
		return 0
	}
	return max(cgroup.Count(text, "oom_kill"), 0)
}

// release keeps the bound for later attempts, or removes it. All its processes must have
// ended.
func (d *bound) release() error {
	if d == nil {
		return nil
	}
	idle := &d.all.idle[0]
	if len(d.paths) > 1 {
		idle = &d.all.idle[1]
	}
	if d.isReusable() {
		d.all.mu.Lock()
		defer d.all.mu.Unlock()
		if len(*idle) < maxIdle {
			*idle = append(*idle, d)
			return nil
		}
	}
	return d.remove()
}

// isReusable reports whether the next attempt would see no trace of an earlier one. Files in
// memory file systems are charged as long as they exist and cannot be dropped.
func (d *bound) isReusable() bool {
	stat, err := os.ReadFile(filepath.Join(d.paths["memory"], "memory.stat"))
	if err != nil || cgroup.Count(stat, "shmem") > 0 {
		return false
	}
	for controller, path := range d.paths {
		var info unix.Stat_t
		if unix.Stat(path, &info) != nil || info.Nlink != 2 {
			return false
		}
		tasks, err := os.ReadFile(filepath.Join(path, "tasks"))
		threads := 0
		if controller == "memory" && d.inside != nil {
			threads = 1
		}
		if err != nil || len(bytes.Fields(tasks)) > threads {
			return false
		}
	}
	return true
}

func (d *bound) remove() error {
	if d.inside != nil {
		d.inside.Close()
	}
	var errs []error
	for _, controller := range slices.Sorted(maps.Keys(d.paths)) {
		var err error
		errs = append(errs, poll.Until(func() bool {
			err = cgroup.Remove(d.paths[controller])
			return err == nil
		}, func() error { return err }))
	}
	return errors.Join(errs...)
}

// olderThan reports whether the kernel is older than a release.
func olderThan(major, minor int) (bool, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false, err
	}
	release := unix.ByteSliceToString(name.Release[:])
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(first)
	if err != nil {
		return false, fmt.Errorf("kernel release %q: %w", release, err)
	}
	b, err := strconv.Atoi(strings.TrimRight(second, "+-abcdefghijklmnopqrstuvwxyz"))
	if err != nil {
		return false, fmt.Errorf("kernel release %q: %w", release, err)
	}
	return a < major || a == major && b < minor, nil
}

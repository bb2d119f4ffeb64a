package node

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cgroups are the control groups of this process: the share of the machine that a container, a
// service manager or a batch system grants it.
type cgroups struct {
	sys fs.FS
	// dirs holds folders below /sys by controller, from the process's own group up to the topmost
	// visible one. A limit of any of them applies.
	dirs map[string][]string
	v2   map[string]bool // by controller
}

// controllers are the controllers whose limits are read.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory"}

// findCgroups locates the groups of this process. Without control groups or without /proc, the
// result is empty.
func findCgroups(proc, sys fs.FS) cgroups {
	c := cgroups{sys: sys, dirs: map[string][]string{}, v2: map[string]bool{}}
	own, err := fs.ReadFile(proc, "self/cgroup")
	if err != nil {
		return c
	}
	mounts, err := fs.ReadFile(proc, "self/mountinfo")
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(own)) {
		// hierarchy:controllers:path; hierarchy 0 is version 2.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for _, controller := range controllers {
			v2 := fields[0] == "0"
			if v2 && c.dirs[controller] != nil || !v2 && !slices.Contains(strings.Split(fields[1], ","), controller) {
				continue
			}
			if dirs := c.find(string(mounts), controller, v2, fields[2]); len(dirs) > 0 {
				c.dirs[controller], c.v2[controller] = dirs, v2
			}
		}
	}
	return c
}

// find returns the folders of a controller for the group at a path, or nil if the controller is not
// mounted.
func (c cgroups) find(mounts, controller string, v2 bool, group string) []string {
	for line := range strings.Lines(mounts) {
		// id parent major:minor root mountpoint options [tags] - type source superoptions
		place, kind, ok := strings.Cut(strings.TrimSpace(line), " - ")
		fields, types := strings.Fields(place), strings.Fields(kind)
		if !ok || len(fields) < 5 || len(types) < 3 {
			continue
		}
		if v2 && types[0] != "cgroup2" || !v2 && (types[0] != "cgroup" || !slices.Contains(strings.Split(types[2], ","), controller)) {
			continue
		}
		top, ok := strings.CutPrefix(fields[4], "/sys/")
		if !ok {
			continue
		}
		// The mount may show only a part of the tree, such as a container's. In that case the
		// group's path, which is relative to the top of the whole tree, does not exist below the
		// mount.
		inside, ok := strings.CutPrefix(path.Clean("/"+group), strings.TrimSuffix(fields[3], "/"))
		dir := path.Join(top, inside)
		if _, err := fs.Stat(c.sys, dir); !ok || err != nil {
			dir = top
		}
		dirs := []string{dir}
		for dir != top {
			dir = path.Dir(dir)
			dirs = append(dirs, dir)
		}
		return dirs
	}
	return nil
}

// cpuQuota returns the tightest limit on processor time, in cores, and the group that has it.
// Without a limit it returns +Inf.
func (c cgroups) cpuQuota() (cores float64, dir string) {
	cores = math.Inf(1)
	for _, d := range c.dirs["cpu"] {
		var quota, period float64
		if c.v2["cpu"] {
			fields := strings.Fields(c.text(path.Join(d, "cpu.max")))
			if len(fields) == 2 {
				quota, period = number(fields[0]), number(fields[1])
			}
		} else {
			quota, period = c.number(path.Join(d, "cpu.cfs_quota_us")), c.number(path.Join(d, "cpu.cfs_period_us"))
		}
		if quota > 0 && period > 0 && quota/period < cores {
			cores, dir = quota/period, d
		}
	}
	return cores, dir
}

// cpuSeconds returns the processor time that a group has used. dir is a folder that cpuQuota has
// returned.
func (c cgroups) cpuSeconds(dir string) (float64, bool) {
	if c.v2["cpu"] {
		usec, ok := c.stat(path.Join(dir, "cpu.stat"))["usage_usec"]
		return usec / 1e6, ok
	}
	accounts, groups := c.dirs["cpuacct"], c.dirs["cpu"]
	if len(accounts) == 0 || c.v2["cpuacct"] {
		return 0, false
	}
	// Use the group at the same level of the other tree, counted from the top.
	up := min(len(groups)-1-slices.Index(groups, dir), len(accounts)-1)
	nsec := c.number(path.Join(accounts[len(accounts)-1-up], "cpuacct.usage"))
	return nsec / 1e9, nsec > 0
}

// cpus returns the processors that the process may use, or false if the groups do not specify them.
func (c cgroups) cpus() ([]int32, bool) {
	return c.set("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
}

// mems returns the NUMA nodes whose memory the process may use, or false if the groups do not
// specify them.
func (c cgroups) mems() ([]int32, bool) {
	return c.set("cpuset.mems.effective", "cpuset.effective_mems", "cpuset.mems")
}

// set returns the list in the first of the files that exists and is not empty.
func (c cgroups) set(files ...string) ([]int32, bool) {
	for _, d := range c.dirs["cpuset"] {
		for _, file := range files {
			if set, err := parseList(c.text(path.Join(d, file))); err == nil && len(set) > 0 {
				return set, true
			}
		}
	}
	return nil, false
}

// memory returns the tightest limit on memory and the least memory that any group has left, in
// bytes. Page cache counts as left, because the kernel reclaims it before it kills a process.
// Without a limit both are +Inf.
func (c cgroups) memory() (limit, left float64) {
	limit, left = math.Inf(1), math.Inf(1)
	for _, d := range c.dirs["memory"] {
		var most, used, cached float64
		if c.v2["memory"] {
			most, used = c.number(path.Join(d, "memory.max")), c.number(path.Join(d, "memory.current"))
			stat := c.stat(path.Join(d, "memory.stat"))
			cached = stat["active_file"] + stat["inactive_file"] + stat["slab_reclaimable"]
		} else {
			most, used = c.number(path.Join(d, "memory.limit_in_bytes")), c.number(path.Join(d, "memory.usage_in_bytes"))
			stat := c.stat(path.Join(d, "memory.stat"))
			cached = stat["total_active_file"] + stat["total_inactive_file"]
		}
		if most > 0 {
			limit, left = min(limit, most), min(left, max(most-max(used-cached, 0), 0))
		}
	}
	return limit, left
}

func (c cgroups) text(name string) string {
	b, err := fs.ReadFile(c.sys, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns the number in a file, or 0 if there is none or the file contains "max".
func (c cgroups) number(name string) float64 { return number(c.text(name)) }

func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return x
}

// stat parses a file with lines such as "usage_usec 42".
func (c cgroups) stat(name string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(c.text(name)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			values[fields[0]] = number(fields[1])
		}
	}
	return values
}

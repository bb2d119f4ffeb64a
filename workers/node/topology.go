package node

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// onlinePath lists the processors that are online.
	onlinePath = "devices/system/cpu/online"
	// numaPath has a folder for each NUMA node.
	numaPath = "devices/system/node"
)

// longestList bounds the members of a list of processors. Longer text is not a valid list.
const longestList = 1 << 16

// usableCPUs returns the processors that are online and that the process may use, or false if the
// kernel does not list them, as on systems other than Linux.
func usableCPUs(sys fs.FS, groups cgroups) ([]int32, bool) {
	online, err := readList(sys, onlinePath)
	if err != nil || len(online) == 0 {
		return nil, false
	}
	if allowed, ok := groups.cpus(); ok {
		if both := intersect(online, allowed); len(both) > 0 {
			return both, true
		}
	}
	return online, true
}

// numaNodes returns the NUMA nodes with the parts that the process may use, or nil if there are
// fewer than two. A NUMA node may have no memory or no processors. Page cache counts as free, as it
// does in the figures of the machine.
func numaNodes(sys fs.FS, groups cgroups) []*v1.NumaSnapshot {
	indices, err := readList(sys, path.Join(numaPath, "online"))
	if err != nil || len(indices) < 2 {
		return nil
	}
	cpus, known := usableCPUs(sys, groups)
	mems, limited := groups.mems()
	var nodes []*v1.NumaSnapshot
	for _, index := range indices {
		dir := path.Join(numaPath, fmt.Sprintf("node%d", index))
		n := &v1.NumaSnapshot{Index: index}
		if own, err := readList(sys, path.Join(dir, "cpulist")); err == nil {
			n.Cpus = own
			if known {
				n.Cpus = intersect(own, cpus)
			}
		}
		if !limited || slices.Contains(mems, index) {
			n.MemoryTotalMb, n.MemoryFreeMb = numaMemory(sys, path.Join(dir, "meminfo"))
		}
		if len(n.Cpus) > 0 || n.MemoryTotalMb > 0 {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	return nodes
}

// numaMemory parses a file with lines such as "Node 0 MemTotal:  65536 kB" and returns MiB.
func numaMemory(sys fs.FS, name string) (total, free float64) {
	b, err := fs.ReadFile(sys, name)
	if err != nil {
		return 0, 0
	}
	kib := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) >= 4 {
			kib[strings.TrimSuffix(fields[2], ":")] = number(fields[3])
		}
	}
	total = kib["MemTotal"] / 1024
	free = (kib["MemFree"] + kib["Active(file)"] + kib["Inactive(file)"] + kib["SReclaimable"]) / 1024
	return total, min(free, total)
}

func readList(fsys fs.FS, name string) ([]int32, error) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return parseList(strings.TrimSpace(string(b)))
}

// parseList parses a list of processors or NUMA nodes in the kernel's format, such as "0-3,8". The
// result is in ascending order and without duplicates. Empty text is an empty list.
func parseList(text string) ([]int32, error) {
	var set []int32
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		first, last, ranged := strings.Cut(part, "-")
		from, err := strconv.ParseUint(first, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("list %q: %w", text, err)
		}
		to := from
		if ranged {
			if to, err = strconv.ParseUint(last, 10, 31); err != nil {
				return nil, fmt.Errorf("list %q: %w", text, err)
			}
		}
		if to < from || to-from >= longestList || len(set) >= longestList {
			return nil, fmt.Errorf("list %q: not a range", part)
		}
		for i := from; i <= to; i++ {
			set = append(set, int32(i))
		}
	}
	slices.Sort(set)
	return slices.Compact(set), nil
}

// intersect returns the common members of two sorted lists.
func intersect(a, b []int32) []int32 {
	var both []int32
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); ok {
			both = append(both, x)
		}
	}
	return both
}

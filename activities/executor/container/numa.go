package container

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"switchyard/activities/executor"
)

// numaSet restricts a container to processors and NUMA nodes, given as lists such as
// "0-3,8".
type numaSet struct{ cpus, mems string }

// topology is the directory in which the system describes its NUMA nodes.
var topology = os.DirFS("/sys/devices/system/node")

// numaOf returns the set that binds an attempt to its NUMA node, or nil if the
// attempt is not bound. It reads the processors from sys, which is
// /sys/devices/system/node.
func numaOf(sys fs.FS, a executor.Attempt) (*numaSet, error) {
	if a.Binding.NUMANode == nil {
		return nil, nil
	}
	number := strconv.Itoa(int(*a.Binding.NUMANode))
	text, err := fs.ReadFile(sys, path.Join("node"+number, "cpulist"))
	cpus := strings.TrimSpace(string(text))
	switch {
	case err == nil && cpus != "":
		return &numaSet{cpus: cpus, mems: number}, nil
	case a.Binding.NUMAOptional:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("bind to NUMA node %s: %w", number, err)
	}
	return nil, fmt.Errorf("bind to NUMA node %s: it has no processors", number)
}

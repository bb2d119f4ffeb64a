package shell

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"switchyard/activities/executor"
)

// withGPUs adds to a task's environment which GPUs it is to see; nil: that is not said.
func withGPUs(env map[string]string, gpus []int32) map[string]string {
	if gpus == nil {
		return env
	}
	indices := make([]string, len(gpus))
	for i, gpu := range gpus {
		indices[i] = strconv.Itoa(int(gpu))
	}
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	env["CUDA_VISIBLE_DEVICES"] = strings.Join(indices, ",")
	// The indices are those of nvidia-smi; CUDA's own order is the fastest first.
	env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
	return env
}

// bind puts numactl in front of a program, so that it and its children use the
// processors and the memory of one NUMA node. numactl is the node's, not the task's.
func (e *Executor) bind(p program, numaNode int32, optional bool) (program, error) {
	numactl, err := lookPath("numactl", "", e.environ)
	if err != nil && optional {
		return p, nil
	}
	if err != nil {
		return program{}, &executor.StartError{ExitCode: codeNotFound, Err: fmt.Errorf(
			"numactl is not installed on %s; install it there, or do not bind the task to a NUMA node", nodeOf(p))}
	}
	// That its own program is missing would be numactl's exit code, not a failed start.
	if err := runnable(p); err != nil {
		return program{}, err
	}
	node := strconv.Itoa(int(numaNode))
	p.argv = append([]string{"numactl", "--cpunodebind=" + node, "--membind=" + node, "--", p.path}, p.argv[1:]...)
	p.path = numactl
	return p, nil
}

// runnable reports whether a program is there and may be executed.
func runnable(p program) error {
	path := p.path
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return startError(p.argv[0], err)
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return cannotRun(fmt.Errorf("%s: permission denied", shorten(p.argv[0])))
	}
	return nil
}

// nodeOf is the name of the node that a program is on, as the program sees it.
func nodeOf(p program) string {
	if name := lookup(p.environ, "SWITCHYARD_NODE"); name != "" {
		return "node " + name
	}
	return "this node"
}

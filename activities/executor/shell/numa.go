package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"switchyard/activities/executor"
)

// bind makes numactl start a program, so that the program and its children use the
// processors and the memory of one NUMA node. It uses the node's numactl, not the
// task's.
func (e *Executor) bind(p program, numaNode int32, optional bool) (program, error) {
	numactl, err := lookPath("numactl", "", e.environ)
	if err != nil && optional {
		return p, nil
	}
	if err != nil {
		return program{}, &executor.StartError{ExitCode: codeNotFound, Err: fmt.Errorf(
			"numactl is not installed on %s; install it there, or do not bind the task to a NUMA node", nodeOf(p))}
	}
	// numactl would report a missing program by its exit code, rather than as a failed
	// start.
	if err := runnable(p); err != nil {
		return program{}, err
	}
	node := strconv.Itoa(int(numaNode))
	p.argv = append([]string{"numactl", "--cpunodebind=" + node, "--membind=" + node, "--", p.path}, p.argv[1:]...)
	p.path = numactl
	return p, nil
}

// runnable returns nil if a program exists and may be executed, or else a *StartError.
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

// nodeOf returns the name of the program's node, from the program's environment.
func nodeOf(p program) string {
	if name := lookup(p.environ, "SWITCHYARD_NODE"); name != "" {
		return "node " + name
	}
	return "this node"
}

package shell

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/sandboxinit"
)

// enterBox starts a program in the attempt's sandbox, beside the attempt's own.
func (r *running) enterBox(ctx context.Context, p program, files []*os.File, attr *syscall.SysProcAttr) (*os.Process, error) {
	select {
	case r.tree.box.builds <- struct{}{}:
		defer func() { <-r.tree.box.builds }()
	case <-ctx.Done():
		return nil, errStopped
	}
	var spaces []*os.File
	defer func() {
		for _, f := range spaces {
			f.Close()
		}
	}()
	for _, name := range sandboxinit.EnteredSpaces {
		f, err := os.Open("/proc/" + strconv.Itoa(r.process.Pid) + "/ns/" + name)
		if err != nil {
			if r.process.Signal(syscall.Signal(0)) != nil {
				return nil, executor.ErrNotRunning
			}
			return nil, fmt.Errorf("enter the sandbox of %s: %w", r.attempt.ID, err)
		}
		spaces = append(spaces, f)
	}
	// The signal reaches the attempt's own process or fails, so the namespaces are not another
	// process's.
	if r.process.Signal(syscall.Signal(0)) != nil {
		return nil, executor.ErrNotRunning
	}
	plan := &sandboxinit.Plan{
		Enter: true, Parent: os.Getpid(), User: r.tree.box.user.id, Path: p.path, Argv: p.argv, Environ: p.environ, Dir: p.dir,
		Join: r.tree.bound.joins(),
	}
	if own := r.tree.join(); own != "" {
		plan.Join = append(plan.Join, own)
	}
	return r.startPlan(ctx, plan, files, attr, r.tree.admit, spaces...)
}

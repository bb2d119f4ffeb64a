package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/procfs"
	"switchyard/activities/executor/shell/sandboxinit"
)

// sandboxing is the sandbox state of an Executor.
type sandboxing struct {
	once sync.Once
	err  error
	// builds bounds the number of sandboxes that are built at once.
	builds chan struct{}
}

// buildsPerCPU bounds how many sandboxes are built at once on each CPU. Each takes some 50 ms of CPU time, mostly to start this
// program, so hundreds at once would keep the worker from renewing its leases.
const buildsPerCPU = 2

// CanSandbox returns nil if tasks can run in a sandbox here, or the reason why not. The first call takes a few milliseconds.
func (e *Executor) CanSandbox() error {
	e.sandboxing.once.Do(func() {
		e.sandboxing.builds = make(chan struct{}, buildsPerCPU*runtime.NumCPU())
		e.sandboxing.err = e.checkSandbox()
	})
	return e.sandboxing.err
}

func (e *Executor) checkSandbox() error {
	if err := sandboxinit.HasPrivileges(); err != nil {
		return err
	}
	if err := e.bounds.validate(); err != nil {
		return fmt.Errorf("limits cannot be set: %w", err)
	}
	if err := unix.MountSetattr(-1, "", 0, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return fmt.Errorf("mounts cannot be made read-only, which needs Linux 5.12 or newer: %w", err)
	}
	// As in cgroupFactory.probe, this error means that everything before it worked.
	_, err := os.StartProcess("/dev/null/probe", []string{"probe"}, &os.ProcAttr{
		Env: []string{}, Sys: &syscall.SysProcAttr{Cloneflags: sandboxinit.Namespaces | unix.CLONE_NEWNET},
	})
	if !errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("make namespaces: %w", err)
	}
	return nil
}

// box is the sandbox of an attempt or a batch. A nil box means no sandbox.
type box struct {
	users  *users
	user   *user
	builds chan struct{} // shared with sandboxing
	// given holds the attempts' private directories that the user currently owns.
	given map[string]bool
}

func (e *Executor) newBox() (*box, error) {
	if err := e.CanSandbox(); err != nil {
		return nil, err
	}
	one, err := e.users.acquire()
	if err != nil {
		return nil, err
	}
	return &box{users: e.users, user: one, builds: e.sandboxing.builds, given: make(map[string]bool)}, nil
}

// release takes the workspaces back. No process of the user may be running.
func (b *box) release() error {
	if b == nil {
		return nil
	}
	var errs []error
	for dir := range b.given {
		if err := chownWorkspace(dir, os.Geteuid(), os.Getegid()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("reclaim the workspace: %w", err))
		}
	}
	b.users.release(b.user)
	return errors.Join(errs...)
}

// chownWorkspace changes the owner of a workspace and of the files directly in it. Files that a task puts deeper are removed with the
// workspace.
func chownWorkspace(dir string, uid, gid int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Lchown(filepath.Join(dir, entry.Name()), uid, gid); err != nil {
			return err
		}
	}
	return os.Lchown(dir, uid, gid)
}

// startBoxed starts this program again, which builds the sandbox around itself and then executes the attempt's program.
func (r *running) startBoxed(ctx context.Context, p program, files []*os.File) (*os.Process, error) {
	failed := func(err error) (*os.Process, error) {
		return nil, fmt.Errorf("sandbox %s: %w", r.attempt.ID, err)
	}
	a, b := r.attempt, r.tree.box
	select {
	case b.builds <- struct{}{}:
		defer func() { <-b.builds }()
	case <-ctx.Done():
		return nil, errStopped
	}
	if a.Lease.Lost() {
		return nil, errStopped
	}
	for _, dir := range a.Dirs.Private() {
		if err := chownWorkspace(dir, b.user.id, b.user.id); err != nil {
			return failed(fmt.Errorf("hand over the workspace: %w", err))
		}
		b.given[dir] = true
	}
	if a.Dirs.Files != "" {
		if err := executor.ChownTree(a.Dirs.Files, b.user.id, b.user.id); err != nil {
			return failed(fmt.Errorf("hand over the files of the task: %w", err))
		}
	}
	plan, err := r.plan(p)
	if err != nil {
		return failed(err)
	}
	return r.startPlan(ctx, plan, files, r.tree.attr(), func(start func() (*os.Process, error)) (*os.Process, error) {
		process, err := start()
		if err == nil {
			r.tree.started(process.Pid)
		}
		return process, err
	})
}

// startPlan starts this program again, which carries out the plan and then executes the attempt's program. admit calls start
// and adds the new process to the process tree.
func (r *running) startPlan(ctx context.Context, p *sandboxinit.Plan, files []*os.File, attr *syscall.SysProcAttr,
	admit func(start func() (*os.Process, error)) (*os.Process, error), more ...*os.File) (*os.Process, error) {
	a := r.attempt
	failed := func(err error) (*os.Process, error) {
		return nil, fmt.Errorf("sandbox %s: %w", a.ID, err)
	}
	plan, err := memory(p)
	if err != nil {
		return failed(err)
	}
	defer plan.Close()
	heard, say, err := os.Pipe()
	if err != nil {
		return failed(err)
	}
	defer heard.Close()
	// The process joins the cgroup at the end, so that its own memory is not charged.
	attr.UseCgroupFD = attr.UseCgroupFD && r.tree.join() == ""
	process, err := admit(func() (*os.Process, error) {
		return r.tree.forker.Start("/proc/self/exe", []string{sandboxinit.Name, "--help"}, &os.ProcAttr{
			Dir: "/", Env: []string{procfs.Marker + "=" + a.ID, "GOMAXPROCS=1"}, Files: append(append(slices.Clone(files), say, plan), more...), Sys: attr,
		})
	})
	say.Close()
	if err != nil {
		return failed(err)
	}
	unstop := context.AfterFunc(ctx, func() { _ = process.Kill() })
	said, err := io.ReadAll(heard) // ends when the program has been executed
	stopped := !unstop()
	answer, ran := strings.CutPrefix(string(said), sandboxinit.ExecMessage)
	if ran && answer == "" && err == nil && !stopped {
		return process, nil
	}
	_ = process.Kill()
	_, _ = process.Wait()
	switch {
	case stopped:
		return nil, errStopped
	case err != nil:
		return failed(err)
	case !ran && answer == "":
		return failed(errors.New("it was not built; main must call ServeIfAsked before anything else"))
	case !ran:
		return failed(errors.New(answer))
	}
	errno, err := strconv.Atoi(answer)
	if err != nil {
		return failed(fmt.Errorf("unexpected message %q", said))
	}
	return nil, startError(p.Argv[0], syscall.Errno(errno))
}

// plan returns the plan of the sandbox.
func (r *running) plan(p program) (*sandboxinit.Plan, error) {
	a := r.attempt
	plan := &sandboxinit.Plan{
		Parent: os.Getpid(), User: r.tree.box.user.id, Path: p.path, Argv: p.argv, Environ: p.environ, Dir: p.dir,
		NodeNetwork: p.nodeNetwork, ShmBytes: a.Limits.Memory,
	}
	var err error
	if plan.Workspace, err = resolved(a.Dirs.Workspace); err != nil {
		return nil, err
	}
	if plan.Temp, err = resolved(a.Dirs.Temp); err != nil {
		return nil, fmt.Errorf("private /tmp: %w", err)
	}
	if plan.Files, err = resolved(a.Dirs.Files); err != nil {
		return nil, err
	}
	if plan.Shared, err = resolved(a.Dirs.Shared); err != nil {
		return nil, err
	}
	if plan.Dir == "" {
		if plan.Dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	plan.Join = r.tree.bound.joins()
	if own := r.tree.join(); own != "" {
		plan.Join = append(plan.Join, own)
	}
	return plan, nil
}

// memory returns an anonymous in-memory file that holds a plan.
func memory(plan *sandboxinit.Plan) (*os.File, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "sandbox")
	if _, err := f.WriteAt(text, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// resolved returns a path with symbolic links resolved, or "" if dir is "".
func resolved(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	return filepath.EvalSymlinks(dir)
}

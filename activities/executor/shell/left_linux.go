package shell

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/pipes"
	"switchyard/activities/executor/shell/procfs"
	"switchyard/activities/executor/shell/watchdogproc"
	v1 "switchyard/proto/switchyard/v1"
)

// An attempt that a stopping worker leaves runs on under the watchdog of that worker, which enforces its lease and keeps the
// ends of its pipes. A program that prints more than the pipes hold waits for the next worker. That worker finds the attempt by a
// socket in LeftDir, takes it over, and learns its exit status although the program is not its child.

// left is what the watchdog keeps of an attempt, beside its open files: those of the process, of standard output, of standard error,
// and the directories of a leftTree.
type left struct {
	ID       string
	Identity executor.Identity
	// Secrets are the secret variables of the program, and Environ its whole environment.
	Secrets   map[string]string
	Environ   []string
	Dir       string
	PID       int
	StartedAt time.Time
	Tree      leftTree
	Held      []byte
}

// leftTree is the process tree of a left attempt.
type leftTree struct {
	Leader int
	// Cgroup is the directory of the attempt in cgroup2 and Parent the directory of its worker, which holds the lock and comes as an
	// open file. They are "" if the processes are found by their marker.
	Cgroup, Parent string
	Limited        bool
	OOMKills       int
	// Since is when the first process started, in the unit of procfs.Process. Sessions are those of the search for processes with the
	// marker.
	Since    int
	Sessions []int
}

// leavable is a tree that a later worker can continue. After leave only kill may be called.
type leavable interface {
	leave() (t leftTree, name string, lock *os.File)
}

func (c *cgroupTree) leave() (leftTree, string, *os.File) {
	parent := c.parent
	if parent == nil {
		parent = c.all.parent
		c.all.left.Store(true)
	}
	t := leftTree{Leader: c.leader, Cgroup: c.path, Parent: parent.Path, Limited: c.limited, OOMKills: c.oomKills}
	if p, err := procfs.Read(strconv.Itoa(c.leader)); err == nil {
		t.Since = p.Start
	}
	return t, c.name, parent.Lock()
}

func (m *markerTree) leave() (leftTree, string, *os.File) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := leftTree{Leader: m.leader, Since: m.finder.Since}
	for session := range m.finder.Sessions {
		t.Sessions = append(t.Sessions, session)
	}
	return t, m.id, nil
}

// exitsSince is the first release of Linux that tells the exit status of a process to others than its parent.
var exitsSince = [2]int{6, 15}

// canLeaveHere reports whether attempts can be left on this machine.
func canLeaveHere(guard *watchdog) bool {
	old, err := olderThan(exitsSince[0], exitsSince[1])
	return guard != nil && err == nil && !old
}

// leaver returns the capability Leave.
func (e *Executor) leaver() executor.Leaver {
	if e.leftDir == "" {
		return nil
	}
	return e
}

// CanLeave returns why an attempt cannot be left to a later worker, or nil.
func (e *Executor) CanLeave(id string) error {
	r := e.steered.find(id)
	if r == nil {
		return executor.ErrNotRunning
	}
	_, alone := r.pipes.(*pipes.Dedicated)
	_, found := r.tree.tree.(leavable)
	switch {
	case !e.leaves:
		return fmt.Errorf("Linux keeps the exit status of a program for the next worker since %d.%d", exitsSince[0], exitsSince[1])
	case r.program.sandbox:
		return errors.New("it runs in a sandbox")
	case r.tree.bound != nil:
		return errors.New("cgroup v1 enforces its limits")
	case !alone || !found:
		return errors.New("it is a batch of instances")
	}
	if c, ok := r.tree.tree.(*cgroupTree); ok && c.limited && c.all.parent.InService() {
		return errors.New("its limits need the cgroup of the service; systemd 254 and DelegateSubgroup keep that one")
	}
	return nil
}

// leave leaves a running attempt to a later worker. It returns false if the attempt cannot be left or has ended.
func (e *Executor) leave(r *running) bool {
	if e.CanLeave(r.id) != nil {
		return false
	}
	pidfd, err := handleOf(r.process)
	if err != nil { // it has ended
		return false
	}
	defer pidfd.Close()
	r.mu.Lock()
	if r.exited || r.hasExited() || !r.stopAt.IsZero() {
		r.mu.Unlock()
		return false
	}
	r.leaving = true
	r.mu.Unlock()
	r.steer.Lock() // a pause in progress
	defer r.steer.Unlock()
	r.beside.close()
	r.beside.wait()
	if r.leaveErr = e.handOver(r, pidfd); r.leaveErr != nil {
		r.tree.kill()
		r.leaveErr = errors.Join(fmt.Errorf("leave %s to the next worker: %w", r.id, r.leaveErr), r.end())
	}
	close(r.left)
	return true
}

// handleOf returns a pidfd of a process that has not been waited for. It stays valid if the process ends.
func handleOf(process *os.Process) (pidfd *os.File, err error) {
	var dupErr error
	err = process.WithHandle(func(fd uintptr) {
		var own int
		if own, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); dupErr == nil {
			pidfd = os.NewFile(uintptr(own), "pidfd")
		}
	})
	return pidfd, errors.Join(err, dupErr)
}

// handOver makes the watchdog keep an attempt. It may end meanwhile.
func (e *Executor) handOver(r *running, pidfd *os.File) error {
	out, errs := r.pipes.(*pipes.Dedicated).Leave()
	defer out.Close()
	defer errs.Close()
	a := r.attempt
	k := left{
		ID: a.ID, Identity: a.Identity, Secrets: map[string]string{}, Environ: r.program.environ, PID: r.process.Pid,
		StartedAt: r.startedAt,
	}
	for name := range a.Secrets.Env {
		k.Secrets[name] = a.Env[name]
	}
	var err error
	if k.Dir, err = filepath.Abs(r.program.dir); err != nil { // the next worker may have another one
		return err
	}
	if a.Held != nil {
		if k.Held, err = a.Held(); err != nil {
			return err
		}
	}
	tree, name, lock := r.tree.tree.(leavable).leave()
	k.Tree = tree
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	m := watchdogproc.KeepMessage{Name: name, Socket: e.socket(a.ID), Text: text, Since: tree.Since, Sessions: tree.Sessions}
	return withFiles([]*os.File{out, errs, lock}, []int{int(pidfd.Fd())}, func(files []int) error {
		m.Files = len(files)
		return e.guard.keep(m, files, r.tree.kill)
	})
}

// withFiles calls do with descriptors and those of files, except nil, which stay non-blocking.
func withFiles(files []*os.File, fds []int, do func([]int) error) error {
	if len(files) == 0 {
		return do(fds)
	}
	if files[0] == nil {
		return withFiles(files[1:], fds, do)
	}
	raw, err := files[0].SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = withFiles(files[1:], append(fds, int(fd)), do) })
	return errors.Join(err, failed)
}

// socket returns the path of the socket of a left attempt.
func (e *Executor) socket(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(e.leftDir, fmt.Sprintf("%x.left", sum[:16]))
}

// Survivors returns the attempts that earlier workers of a node have left.
func (e *Executor) Survivors(_ context.Context, node string) ([]executor.Leftover, error) {
	sockets, err := filepath.Glob(filepath.Join(e.leftDir, "*.left"))
	if err != nil {
		return nil, err
	}
	var found []executor.Leftover
	for _, socket := range sockets {
		kept, k, err := dialLeft(socket)
		if errors.Is(err, unix.ECONNREFUSED) {
			_ = os.Remove(socket) // nothing keeps the attempt any more
		}
		if err != nil {
			continue
		}
		if k.Identity.Node == node {
			found = append(found, executor.Leftover{
				ID: k.ID, Identity: k.Identity, Running: !procfs.IsOver(int(kept.Files[0].Fd())), StartedAt: k.StartedAt, Env: k.Secrets, Held: k.Held,
			})
		}
		kept.Close()
	}
	return found, nil
}

// dialLeft returns what is kept of an attempt, by the path of its socket.
func dialLeft(socket string) (*watchdogproc.Kept, left, error) {
	kept, err := watchdogproc.Dial(socket)
	if err != nil {
		return nil, left{}, err
	}
	var k left
	err = json.Unmarshal(kept.Text, &k)
	if want := 3 + min(len(k.Tree.Parent), 1); err == nil && len(kept.Files) != want {
		err = fmt.Errorf("%d files at %s, want %d", len(kept.Files), socket, want)
	}
	if err != nil {
		kept.Close()
		return nil, left{}, err
	}
	return kept, k, nil
}

// Reattach continues an attempt that an earlier worker has left.
func (e *Executor) Reattach(ctx context.Context, a executor.Attempt) (executor.Result, error) {
	r, wait, err := e.takeOver(a)
	if err != nil {
		return executor.Result{}, err
	}
	a.Locate(&v1.Workload{Pid: int32(r.process.Pid)})
	return r.follow(ctx, e, wait)
}

// takeOver makes a left attempt one of this worker.
func (e *Executor) takeOver(a executor.Attempt) (*running, func(*sampler) (executor.Result, bool, error), error) {
	kept, k, err := dialLeft(e.socket(a.ID))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, nil, executor.ErrNotRunning
	}
	if err != nil {
		return nil, nil, fmt.Errorf("take over %s: %w", a.ID, err)
	}
	defer kept.Close()
	if err := e.guard.ensure(e.trees); err != nil {
		return nil, nil, err
	}
	t, err := e.adopt(k, kept.Files, a.Ending)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("take over %s: %w", a.ID, err), abandon(kept, k))
	}
	// Both watchdogs enforce the lease for a moment.
	switch isStopped, err := kept.Take(); {
	case err != nil:
		return nil, nil, errors.Join(fmt.Errorf("take over %s: %w", a.ID, err), t.end())
	case isStopped: // its lease is over: how it ends does not count
		return nil, nil, errors.Join(executor.ErrNotRunning, t.end())
	}
	process, err := os.FindProcess(k.PID)
	if err != nil {
		return nil, nil, errors.Join(err, t.end())
	}
	pidfd := kept.Files[0]
	copies := pipes.Adopt(kept.Files[1], kept.Files[2], a.Stdout, a.Stderr, &e.buffers)
	clear(kept.Files)
	tree := &processTree{tree: t, forker: e.forker}
	r := newRunning(a.ID, tree, a, copies, tree.end)
	r.program, r.process, r.startedAt = program{dir: k.Dir, environ: k.Environ}, process, k.StartedAt
	r.suspended = a.Suspended
	fd := int(pidfd.Fd())
	r.hasExited = func() bool { return procfs.IsOver(fd) }
	return r, func(s *sampler) (executor.Result, bool, error) {
		defer pidfd.Close()
		s.follow(k.PID)
		status, err := procfs.AwaitExit(fd, k.PID)
		peak := s.stop()
		if err != nil {
			return executor.Result{}, false, err
		}
		result := resultOfStatus(status)
		result.PeakMemory, result.CPUTime = peak, s.cpu
		return result, status.Signaled() && status.Signal() == syscall.SIGKILL, nil
	}, nil
}

// abandon ends a left attempt that this worker cannot continue.
func abandon(kept *watchdogproc.Kept, k left) error {
	err := unix.PidfdSendSignal(int(kept.Files[0].Fd()), unix.SIGKILL, nil, 0)
	if err == unix.ESRCH {
		err = nil
	}
	if k.Tree.Cgroup != "" { // which this worker may not see
		err = errors.Join(err, cgroup.Clear(k.Tree.Cgroup))
	}
	err = errors.Join(err, procfs.KillMarked(k.ID))
	_, takeErr := kept.Take()
	return errors.Join(err, takeErr)
}

// adopt returns the process tree of a left attempt, and registers it with the watchdog.
func (e *Executor) adopt(k left, files []*os.File, ending executor.Ending) (tree, error) {
	switch all := e.trees.(type) {
	case *cgroupFactory:
		if k.Tree.Cgroup == "" {
			break
		}
		dir, err := openDir(k.Tree.Cgroup)
		if err != nil {
			return nil, err
		}
		lock := files[3]
		files[3] = nil
		dir.limited = k.Tree.Limited
		c := &cgroupTree{
			all: all, id: k.ID, ending: ending, cgroupDir: dir, leader: k.Tree.Leader, oomKills: k.Tree.OOMKills, parent: cgroup.Adopt(k.Tree.Parent, lock),
		}
		all.strays.noteBegin(k.ID)
		all.strays.reachBack(k.Tree.Since)
		if err := all.guard.add(dir.name, ending); err != nil {
			dir.close()
			return nil, errors.Join(err, lock.Close())
		}
		return c, nil
	case *markerFactory:
		if k.Tree.Cgroup != "" {
			break
		}
		if err := all.guard.add(k.ID, ending); err != nil {
			return nil, err
		}
		m := &markerTree{all: all, id: k.ID, leader: k.Tree.Leader, stopSignal: stopSignal(ending), finder: procfs.NewSearch(k.ID), admitted: map[int]bool{}}
		m.finder.Since = k.Tree.Since
		for _, session := range k.Tree.Sessions {
			m.finder.Sessions[session] = true
		}
		return m, nil
	}
	return nil, errors.New("this worker cannot track the processes of the earlier one")
}

// openDir opens the cgroup directory that an earlier worker has made for an attempt.
func openDir(path string) (*cgroupDir, error) {
	d := &cgroupDir{name: path, path: path}
	var err error
	if d.fd, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open cgroup %s: %w", path, err)
	}
	if d.events, err = os.Open(filepath.Join(path, "cgroup.events")); err != nil {
		unix.Close(d.fd)
		return nil, err
	}
	return d, nil
}

// Remove ends what is left of an attempt, also if no watchdog keeps it.
func (e *Executor) Remove(_ context.Context, l executor.Leftover) error {
	r, _, err := e.takeOver(executor.Attempt{ID: l.ID})
	if err != nil {
		return procfs.KillMarked(l.ID)
	}
	return r.end()
}

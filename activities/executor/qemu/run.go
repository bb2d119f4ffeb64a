package qemu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// startPatience is how long QEMU may take to answer on its socket, on a busy machine.
const startPatience = time.Minute

// errOver reports that an attempt ended before its machine could start.
var errOver = errors.New("the attempt is over")

// exitCannotRun is the exit code of an attempt that cannot start because the task is at fault.
const exitCannotRun = 126

// Run starts a virtual machine and returns when it has ended and is removed. Its console output goes to standard
// output. A machine that powers itself off ends with exit code 0.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	if a.Notify == nil {
		a.Notify = func(string) {}
	}
	m, err := e.start(ctx, a)
	switch {
	case errors.Is(err, errOver), err != nil && isOver(ctx, a) && executor.AsStartError(err) == nil:
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	case err != nil:
		return executor.Result{}, err
	}
	pid, _ := m.folder.readNumber(pidFile)
	a.Locate(&v1.Workload{Pid: int32(pid), Machine: hostname(a.Identity)})
	spawned()
	return m.follow(ctx)
}

// badSpec returns the error for a spec that no attempt can start with.
func badSpec(err error) error {
	return &executor.StartError{ExitCode: exitCannotRun, BadSpec: true, Err: err}
}

// isOver reports whether an attempt must no longer start.
func isOver(ctx context.Context, a executor.Attempt) bool { return ctx.Err() != nil || a.Lease.Lost() }

// start starts the machine of an attempt. After an error nothing of it is left.
func (e *Executor) start(ctx context.Context, a executor.Attempt) (_ *machine, err error) {
	if isOver(ctx, a) {
		return nil, errOver
	}
	p, err := newPlan(a)
	if err != nil {
		return nil, badSpec(err)
	}
	if err := checkMemory(readMeminfo(), p.memoryMB); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.starting[a.ID] = true
	e.mu.Unlock()
	defer func() {
		if err != nil {
			e.mu.Lock()
			delete(e.starting, a.ID)
			e.mu.Unlock()
		}
	}()
	client, err := newKeyPair()
	if err != nil {
		return nil, err
	}
	host, err := newKeyPair()
	if err != nil {
		return nil, err
	}
	r := record{ID: a.ID, Identity: a.Identity, Env: a.Env, User: p.user, Dir: p.dir, ClientKey: client.private, HostKey: host.public}
	f, err := newFolder(e.opts.Dir, r)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, destroy(f, r))
		}
	}()
	if err := e.prepareDisks(ctx, a, p, f, client, host); err != nil {
		return nil, err
	}
	if isOver(ctx, a) {
		return nil, errOver
	}
	limits := executor.Limits{Cores: a.Limits.Cores, Memory: int64(p.memoryMB+overheadMB) << 20}
	group := newGroup(folderName(a.ID), limits)
	defer group.close()
	r.Cgroup = group.directory()
	if err := f.writeRecord(r); err != nil {
		return nil, err
	}
	if err := e.launch(f, p, group); err != nil {
		return nil, err
	}
	m := newMachine(ctx, e, a, r, f)
	if err := m.awaitStart(); err != nil {
		m.giveUp(errClosed)
		return nil, err
	}
	m.register()
	return m, nil
}

// launch starts QEMU, in the group if there is one.
func (e *Executor) launch(f folder, p plan, group *group) error {
	args := arguments(e.opts.Program, p, f)
	launcher, err := startLauncher(f, args, group)
	if err != nil && group != nil {
		launcher, err = startLauncher(f, args, nil) // old kernels cannot start a process in a group
	}
	if err != nil {
		return err
	}
	go reap(launcher)
	return nil
}

// reap waits for a launcher and ignores its exit status: the launcher ends with the machine, or with this process.
func reap(launcher *exec.Cmd) { _ = launcher.Wait() }

// awaitStart waits until QEMU answers, and records the start time.
func (m *machine) awaitStart() error {
	ctx, cancel := context.WithTimeoutCause(m.life, startPatience, fmt.Errorf("QEMU does not answer within %v after its start", startPatience))
	defer cancel()
	for {
		client, err := m.monitor.connect(ctx)
		if err == nil {
			_ = client.Close()
			if m.folder.isRunning() {
				break
			}
		}
		code, hasEnded := m.folder.readNumber(exitFile)
		if hasEnded && code == 0 {
			break // the machine has already shut down
		}
		if hasEnded {
			return fmt.Errorf("QEMU could not start the machine; it exited with %d: %s", code, m.folder.lastWords())
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		sleep(ctx, startPoll)
	}
	m.record.StartedAt = time.Now()
	return m.folder.writeRecord(m.record)
}

// startPoll is how often a starting QEMU is polled.
const startPoll = 20 * time.Millisecond

// maxLastWords bounds the console text in an error, in bytes.
const maxLastWords = 1000

// lastWords returns the end of the console output, joined into one line.
func (f folder) lastWords() string {
	file, err := os.Open(f.file(consoleFile))
	if err != nil {
		return "no output"
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maxLastWords {
		_, _ = file.Seek(-maxLastWords, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(file, maxLastWords))
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "no output"
	}
	return strings.Join(strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

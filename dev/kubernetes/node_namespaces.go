package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// namespacesInit is the command of the first process in a node's namespaces.
	namespacesInit = "namespaces-init"
	// nodeLock is a file whose lock is held while the machine has a real node.
	nodeLock = "/run/lock/switchyard-kubernetes-node.lock"
	// cleanUpLimit is how long the kernel may take to end the processes of killed namespaces.
	cleanUpLimit = 10 * time.Second
)

// runInNamespaces runs `up` in new PID and mount namespaces, and removes what a node leaves behind. When the first
// process in the namespaces ends, every other one ends too, including containers, however this process ends.
func runInNamespaces(args []string) error {
	if os.Geteuid() != 0 {
		return errors.New("--node kubelet needs root")
	}
	lock, err := takeNodeLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := awaitCgroupRemoval(); err != nil {
		return fmt.Errorf("an earlier node of this machine has not ended: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, append([]string{namespacesInit}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	// The child stays in this process group, because it could not read from a terminal otherwise.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	// The kernel sends Pdeathsig when the thread that started the child ends.
	runtime.LockOSThread()
	err = cmd.Run()
	if ctx.Err() != nil {
		err = nil
	}
	removeBridge()
	return errors.Join(err, awaitCgroupRemoval())
}

// awaitCgroupRemoval removes the control groups of a node once the kernel has ended the processes in them.
func awaitCgroupRemoval() error {
	for end := time.Now().Add(cleanUpLimit); ; time.Sleep(pollEvery) {
		if err := removeCgroups(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// takeNodeLock waits until this process may run the machine's real node.
func takeNodeLock() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(nodeLock), 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(nodeLock, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return lock, nil
	}
	fmt.Fprintln(os.Stderr, "waiting for the end of another real node on this machine")
	if err := ignoringInterrupts(func() error { return unix.Flock(int(lock.Fd()), unix.LOCK_EX) }); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func ignoringInterrupts(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// runNamespacesInit runs as the first process in the namespaces. It mounts their private file systems, runs `up`, and
// reaps orphaned processes, such as the shims of containerd.
func runNamespacesInit(args []string) error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{target: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
		// Mounts of the kubelet must propagate to its containers.
		{target: "/", flags: unix.MS_REC | unix.MS_SHARED},
		{source: "proc", target: "/proc", kind: "proc", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		// Containerd and its shims use fixed paths in /run, which a Docker engine also uses.
		{source: "tmpfs", target: "/run", kind: "tmpfs", data: "mode=755"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	pid, err := syscall.ForkExec(self, append([]string{self, "up", "--inside-namespaces"}, args...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		return err
	}
	go func() {
		for range signals {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}()
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case ended == pid:
			// `up` has already printed its error.
			os.Exit(status.ExitStatus())
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"switchyard/dev/processes"
)

// buildBinary builds the switchyard of this tree in a new folder. The caller must remove the folder.
func buildBinary(ctx context.Context) (binary, dir string, err error) {
	if dir, err = os.MkdirTemp("", "switchyard-bench-"); err != nil {
		return "", "", err
	}
	binary = filepath.Join(dir, "switchyard")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		_ = os.RemoveAll(dir) // best effort: it is a temporary folder
		return "", "", fmt.Errorf("build: %w", err)
	}
	return binary, dir, nil
}

// startProcess starts a program whose output goes to a folder, and returns when it has printed a line that begins with a word.
func startProcess(ctx context.Context, folder, until string, env []string, path string, args ...string) (*processes.Process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(processes.CleanEnv(), env...)
	p, err := processes.Start(cmd, folder, args[0])
	if err != nil {
		return nil, err
	}
	if _, err := p.Field(ctx, until); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// end ends a process in order, with SIGTERM.
func end(p *processes.Process) {
	if p.Signal(syscall.SIGTERM) == nil { // otherwise it has ended
		_, _ = p.Wait(context.Background())
	}
}

// said returns the rest of a line that a process has printed at its start, or "" if there is none.
func said(p *processes.Process, word string) string {
	_, rest, _ := strings.Cut("\n"+p.Stdout.String(), "\n"+word)
	rest, _, _ = strings.Cut(rest, "\n")
	return strings.TrimSpace(rest)
}

// memory returns the memory of a process in MiB: VmRSS is what it holds now, VmHWM its peak.
func memory(p *processes.Process, figure string) (int, error) {
	bytes, err := processes.Memory(p.Cmd.Process.Pid, figure)
	return int(bytes >> 20), err
}

// processorTime returns the processor time of this process so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

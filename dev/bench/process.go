package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// process is a running program with the lines that it printed at its start.
type process struct {
	cmd  *exec.Cmd
	said map[string]string
}

// startProcess starts a program and returns when it has printed a line that begins with a word.
func startProcess(ctx context.Context, until string, env []string, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, path, args...), said: map[string]string{}}
	p.cmd.Env = env
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		p.said[word] = strings.TrimSpace(rest)
		if word == until {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("%s %s did not start", filepath.Base(path), args[0])
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

// memory returns the memory of the process in MiB: VmRSS is what it holds now, VmHWM its peak.
func (p *process) memory(field string) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			return kib >> 10, err
		}
	}
	return 0, errors.New("no " + field + " in /proc")
}

// processorTime returns the processor time of this process so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

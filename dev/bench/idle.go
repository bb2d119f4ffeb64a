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

const (
	// settle is how long a process may settle before it counts as idle.
	settle = 10 * time.Second
	// idleFor is how long an idle process is measured.
	idleFor = 30 * time.Second
	// clockTick is the unit of the times in /proc/<pid>/stat, sysconf(_SC_CLK_TCK).
	clockTick = 10 * time.Millisecond
)

// idle prints what a worker without tasks costs: its memory, its processor time, and the processor time that its
// heartbeats cost the server and the control process.
func idle(ctx context.Context) error {
	binary, dir, err := buildBinary(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dev, err := startProcess(ctx, "Gateway", os.Environ(), binary, "dev", "--nodes", "0", "--port", "0", "--gateway-port", "0", "--ui-port", "0", "--store", filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	defer dev.stop()
	without, _, err := dev.idle(ctx)
	if err != nil {
		return err
	}
	env := append(os.Environ(), "TEMPORAL_ADDRESS="+dev.said["Temporal"], "SWITCHYARD_GATEWAY="+dev.said["Gateway"])
	worker, err := startProcess(ctx, "Node", env, binary, "worker", "--name", "idle")
	if err != nil {
		return err
	}
	defer worker.stop()
	own, memory, err := worker.idle(ctx)
	if err != nil {
		return err
	}
	with, _, err := dev.idle(ctx)
	if err != nil {
		return err
	}
	percent := func(d time.Duration) string {
		return fmt.Sprintf("%.2f%% of a core", 100*d.Seconds()/idleFor.Seconds())
	}
	fmt.Printf("| memory | an idle worker, CPU | %s | | |\n", percent(own))
	fmt.Printf("| memory | an idle worker, memory | %d MiB | | |\n", memory)
	fmt.Printf("| memory | a node's heartbeat, CPU of server and control process | %s | | |\n", percent(with-without))
	return nil
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

// idle returns the processor time that the process uses while it is idle, and its memory at that time, in MiB.
func (p *process) idle(ctx context.Context) (cpu time.Duration, memory int, err error) {
	if err := sleep(ctx, settle); err != nil {
		return 0, 0, err
	}
	before, errBefore := p.cpu()
	if err := sleep(ctx, idleFor); err != nil {
		return 0, 0, err
	}
	after, errAfter := p.cpu()
	memory, errMemory := p.memory()
	return after - before, memory, errors.Join(errBefore, errAfter, errMemory)
}

func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("too few fields in %q", text)
	}
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick, errors.Join(errUser, errSystem)
}

func (p *process) memory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			return kib >> 10, err
		}
	}
	return 0, errors.New("no VmRSS in /proc")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

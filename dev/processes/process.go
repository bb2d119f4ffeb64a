package processes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Process is a started program. It leads its own process group, so that a signal to this process does not reach it, and it
// is killed when this process ends in any way.
type Process struct {
	Name           string
	Cmd            *exec.Cmd
	Stdout, Stderr Output
	ended          chan struct{}
}

// Output is the path of the file that a process writes to.
type Output string

// String returns everything that the process has written.
func (o Output) String() string {
	text, _ := os.ReadFile(string(o)) // without the file there is no output
	return string(text)
}

// Start starts a command. Its output goes to the files NAME.out and NAME.log in a folder. An existing log is continued.
func Start(cmd *exec.Cmd, folder, name string) (*Process, error) {
	path := filepath.Join(folder, name)
	p := &Process{Name: name, Cmd: cmd, Stdout: Output(path + ".out"), Stderr: Output(path + ".log"), ended: make(chan struct{})}
	// The truncated file keeps output of the previous process from showing a restarted one as ready.
	stdout, err := os.Create(string(p.Stdout))
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, err := os.OpenFile(string(p.Stderr), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := startBound(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the exit code is read from the state
	}()
	return p, nil
}

// Field waits for a line on standard output that begins with a word, and returns the rest of the line.
func (p *Process) Field(ctx context.Context, word string) (string, error) {
	line, err := p.await(ctx, p.Stdout, word, func(line string) bool { return strings.HasPrefix(line, word) })
	return strings.TrimSpace(strings.TrimPrefix(line, word)), err
}

// Line waits for a line of the output that contains a text, and returns the line.
func (p *Process) Line(ctx context.Context, o Output, text string) (string, error) {
	return p.await(ctx, o, text, func(line string) bool { return strings.Contains(line, text) })
}

func (p *Process) await(ctx context.Context, o Output, what string, isWanted func(line string) bool) (found string, err error) {
	err = Eventually(ctx, fmt.Sprintf("%s prints %q", p.Name, what), func() (bool, error) {
		hasEnded := p.HasEnded() // before the last lines are read
		for line := range strings.Lines(o.String()) {
			if isWanted(line) && strings.HasSuffix(line, "\n") {
				found = strings.TrimSuffix(line, "\n")
				return true, nil
			}
		}
		if hasEnded {
			return false, fmt.Errorf("%s has ended with exit code %d and without a line with %q: %s", p.Name, p.ExitCode(), what, p.LastWords())
		}
		return false, nil
	})
	return found, err
}

// Signal sends a signal to the process, but not to its children.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.Cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s to %s: %w", s, p.Name, err)
	}
	return nil
}

// Kill kills the process with SIGKILL, like a crash, and waits until it has ended. It returns nil if the process had ended
// before.
func (p *Process) Kill() error {
	if p.HasEnded() {
		return nil
	}
	err := p.Signal(syscall.SIGKILL)
	<-p.ended
	return err
}

// Wait waits until the process has ended, and returns its exit code.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.ended:
		return p.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s has not ended: %w", p.Name, context.Cause(ctx))
	}
}

// ExitCode returns the exit code of a process that has ended, or -1 if a signal has ended it.
func (p *Process) ExitCode() int { return p.Cmd.ProcessState.ExitCode() }

// HasEnded reports whether the process has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// LastWords returns the last lines of the log.
func (p *Process) LastWords() string {
	lines := strings.Split(strings.TrimSpace(p.Stderr.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}

// Memory returns a figure of /proc about the memory of a process that has not ended, in bytes: RssAnon is its private
// memory, VmRSS all that it holds, and VmHWM its peak.
func Memory(pid int, figure string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), figure+":")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("read %s of process %d: %w", figure, pid, err)
	}
	return kib << 10, nil
}

// The pause between two checks of a condition becomes longer, because many conditions start a program.
const firstPause, longestPause = 10 * time.Millisecond, 300 * time.Millisecond

// Eventually waits until a condition holds. An error of the condition ends the wait.
func Eventually(ctx context.Context, what string, holds func() (bool, error)) error {
	for wait := firstPause; ; wait = min(wait*5/4, longestPause) {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		if Pause(ctx, wait) != nil {
			return fmt.Errorf("timed out waiting until %s", what)
		}
	}
}

// Pause waits for a time that is part of a drill, such as the length of an outage.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// CleanEnv returns this process's environment without variables that would point a program at a real cluster.
func CleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SWITCHYARD_") && !strings.HasPrefix(kv, "TEMPORAL_") && !strings.HasPrefix(kv, "CHAOS_") {
			env = append(env, kv)
		}
	}
	return env
}

package drill

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a started member of a cluster. It leads its own process group, so that signals to the drill do not reach
// it.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdout string // path of its standard output
	stderr string // path of its log
	ended  chan struct{}
}

// startProcess starts a program with the given environment. Its output goes to files in dir.
func startProcess(dir, name string, env []string, program string, args ...string) (*process, error) {
	p := &process{
		name: name, ended: make(chan struct{}), cmd: exec.Command(program, args...),
		stdout: filepath.Join(dir, name+".out"), stderr: filepath.Join(dir, name+".log"),
	}
	// The truncated file keeps output of the previous process from showing a restarted member as ready.
	stdout, err := os.Create(p.stdout)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, err := os.OpenFile(p.stderr, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir, p.cmd.Env = stdout, stderr, dir, env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the exit code is read from the state
	}()
	return p, nil
}

// expect waits for a line on standard output that begins with a word, and returns the rest of the line.
func (p *process) expect(ctx context.Context, word string) (rest string, err error) {
	err = eventually(ctx, fmt.Sprintf("%s prints %q", p.name, word), func() (bool, error) {
		text, err := os.ReadFile(p.stdout)
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(string(text)) {
			var found bool
			if rest, found = strings.CutPrefix(line, word); found && strings.HasSuffix(line, "\n") {
				rest = strings.TrimSpace(rest)
				return true, nil
			}
		}
		if p.hasEnded() {
			return false, fmt.Errorf("%s has ended with exit code %d: %s", p.name, p.cmd.ProcessState.ExitCode(), p.lastWords())
		}
		return false, nil
	})
	return rest, err
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s to %s: %w", s, p.name, err)
	}
	return nil
}

// kill kills the process with SIGKILL, like a crash, and waits until it has ended.
func (p *process) kill() error {
	if p.hasEnded() {
		return nil
	}
	err := p.signal(syscall.SIGKILL)
	<-p.ended
	return err
}

// wait waits until the process has ended by itself, and returns its exit code.
func (p *process) wait(ctx context.Context) (int, error) {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s has not ended: %w", p.name, context.Cause(ctx))
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// lastWords returns the last lines of the log.
func (p *process) lastWords() string {
	text, _ := os.ReadFile(p.stderr) // without a log there is nothing to report
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-5):], []byte(" | ")))
}

// pollInterval is the interval between two checks of a condition.
const pollInterval = 50 * time.Millisecond

// eventually waits until a condition holds. An error of the condition ends the wait.
func eventually(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting until %s", what)
		case <-time.After(pollInterval):
		}
	}
}

// pause waits for a time that is part of the drill, such as the length of a cut.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

package kubetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// process is a running `up` of dev/kubernetes. It ends when its input does, so at the latest with this process.
type process struct {
	dir        string
	kubeconfig string

	// mu is held from a command to its reply.
	mu      sync.Mutex
	input   io.WriteCloser
	answers *bufio.Reader
	cmd     *exec.Cmd

	stop    sync.Once
	stopErr error
}

// startProcess starts a cluster in a folder of its own, and waits until pods can be created. Each step of `up` has a
// time limit.
func startProcess(program string, o Options) (*process, error) {
	dir, err := os.MkdirTemp("", "kubetest")
	if err != nil {
		return nil, err
	}
	args := []string{"up", "--dir", dir, "--fake-nodes", strconv.Itoa(o.FakeNodes)}
	if o.NodeGrace > 0 {
		args = append(args, "--node-grace", o.NodeGrace.String())
	}
	if o.RealNode {
		args = append(args, "--node", "kubelet", "--images", strings.Join(o.Images, ","))
	}
	progress, err := os.Create(filepath.Join(dir, "up.log"))
	if err != nil {
		return nil, err
	}
	defer progress.Close()
	cmd := exec.Command(program, args...)
	cmd.Stderr = progress
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := &process{dir: dir, input: input, answers: bufio.NewReader(output), cmd: cmd}
	line, err := p.answers.ReadString('\n')
	kubeconfig, ready := strings.CutPrefix(strings.TrimSpace(line), "READY ")
	if err != nil || !ready {
		log := p.logs()
		return nil, errors.Join(fmt.Errorf("start Kubernetes: it printed %q (%v)\n%s", line, err, log), p.Stop())
	}
	p.kubeconfig = kubeconfig
	return p, nil
}

// execute makes `up` execute a command, and waits for the reply.
func (p *process) execute(command string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := fmt.Fprintln(p.input, command); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	line, err := p.answers.ReadString('\n')
	switch line = strings.TrimSpace(line); {
	case err != nil:
		return fmt.Errorf("%s: Kubernetes has ended: %w\n%s", command, err, p.logs())
	case line != "ok":
		return fmt.Errorf("%s: %s", command, strings.TrimPrefix(line, "error "))
	}
	return nil
}

// Stop ends the cluster and removes its folder. A second Stop returns the result of the first.
func (p *process) Stop() error {
	p.stop.Do(func() {
		err := p.input.Close()
		if wait := p.cmd.Wait(); wait != nil {
			err = errors.Join(err, fmt.Errorf("end Kubernetes: %w", wait))
		}
		p.stopErr = errors.Join(err, os.RemoveAll(p.dir))
	})
	return p.stopErr
}

// logLines is the number of last lines of each log that errors and failed tests show.
const logLines = 15

// logs returns the ends of the cluster's logs.
func (p *process) logs() string {
	paths, _ := filepath.Glob(filepath.Join(p.dir, "log", "*.log")) // the pattern is valid
	var out strings.Builder
	for _, path := range append([]string{filepath.Join(p.dir, "up.log")}, paths...) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		lines := strings.SplitAfter(string(text), "\n")
		fmt.Fprintf(&out, "--- %s\n%s", filepath.Base(path), strings.Join(lines[max(0, len(lines)-logLines):], ""))
	}
	return out.String()
}

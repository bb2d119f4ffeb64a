package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/chaos/drill"
	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// binary is the program under test, and repository the folder of its source.
var binary, repository string

func TestMain(m *testing.M) {
	drill.ServeIfAsked()
	// Most tests wait for processes that they have started. Each has about 200 MiB of them.
	testneeds.Parallel(6)
	os.Exit(build(m))
}

// build builds the binary, starts the shared stack, and runs the tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "switchyard-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	removeState, err := testneeds.OwnState()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer removeState()
	if repository, err = filepath.Abs("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if binary, err = testneeds.Program("switchyard"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dev := exec.Command(binary, sharedCommand...)
	dev.Dir, dev.Env = repository, append(processes.CleanEnv(), "TMPDIR="+dir)
	if sharedProcess, err = processes.Start(dev, dir, "dev"); err != nil {
		fmt.Fprintln(os.Stderr, "start the shared stack:", err)
		return 1
	}
	defer func() { _ = sharedProcess.Kill() }() // the tests have ended
	return m.Run()
}

// start starts the binary in the repository's folder with a clean environment.
func start(t *testing.T, args ...string) *processes.Program {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith starts the binary with additional environment variables.
func startWith(t *testing.T, env []string, args ...string) *processes.Program {
	t.Helper()
	return startOther(t, binary, env, args...)
}

// startOther starts a binary that may be of another release.
func startOther(t *testing.T, binary string, env []string, args ...string) *processes.Program {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = repository, env
	return processes.StartForTest(t, cmd)
}

// run runs the binary to its end.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, args...)
	code = p.Wait()
	return code, p.Stdout.String(), p.Stderr.String()
}

// write writes a definition into a folder of the test and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	return processes.WriteFile(t, "definition.yaml", text)
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// outputOf runs a tool and returns its combined output.
func outputOf(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), processes.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = processes.CleanEnv()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

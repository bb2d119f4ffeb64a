//go:build engines

package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/processes"
	"switchyard/dev/sessiontest"
)

// machine is a vps of a stack, on a node with a process of its own.
type machine struct {
	*processes.Stack
	t      *testing.T // of the stack; its workers end with it
	id     string
	key    string // file with the public key that may log in
	worker *processes.Program
	args   []string // arguments of the worker
}

// startMachine creates a machine from the test image, to which OpenSSH clients can log in.
func startMachine(t *testing.T) (*machine, *sessiontest.OpenSSH) {
	t.Helper()
	return startMachineOf(t, nil, "--image", enginetest.Image(t))
}

// startMachineOf creates a machine with the given flags of `vps create`, on a node with the given flags.
func startMachineOf(t *testing.T, flags []string, made ...string) (*machine, *sessiontest.OpenSSH) {
	t.Helper()
	// Socket paths have at most 107 bytes, and t.TempDir exceeds that for long test names.
	dir, err := os.MkdirTemp("", "machine-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	m := &machine{t: t, Stack: startDev(t, "--nodes", "0", "--ssh-address", "127.0.0.1:0", "--ssh-host", "machines.example.com", "--ssh-port", "2222")}
	m.args = []string{"--spool-dir", filepath.Join(dir, "spool"), "--scratch-dir", dir, "--offline-after", "3s", "--metrics-address", "none"}
	m.args = append(m.args, flags...)
	m.join()
	door := strings.Fields(strings.TrimPrefix(m.Line(m.Stdout, "SSH"), "SSH"))[0]
	client := sessiontest.NewOpenSSH(t, strings.TrimSuffix(door, ":"), "")
	key := filepath.Join(dir, "key.pub")
	if err := os.WriteFile(key, []byte(client.AuthorizedKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	m.key = key
	m.create(t, made...)
	client.User = m.id
	return m, client
}

// create creates a machine that replaces the previous one.
func (m *machine) create(t *testing.T, made ...string) {
	t.Helper()
	stdout, _ := do(t, m.Gateway, 0, append([]string{"vps", "create", "--name", "box", "--ssh-key", m.key, "--wait=5m", "-o", "json"}, made...)...)
	m.id = fieldOf(t, stdout, "id")
	processes.Await(t, "the machine can be entered", func() bool {
		code, _, _ := m.inside(t, "", "true")
		return code == 0
	})
}

// fieldOf returns a string field of a JSON document.
func fieldOf(t *testing.T, document, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(document, `"`+name+`":`)
	parts := strings.SplitN(rest, `"`, 3)
	if !found || len(parts) < 3 {
		t.Fatalf("%s is not in %s", name, document)
	}
	return parts[1]
}

// join starts the worker of the machine's node.
func (m *machine) join() {
	m.t.Helper()
	m.worker = startWorker(m.t, m.Temporal, m.Gateway, "box", m.args...)
}

// state returns the state of the task.
func (m *machine) state(t *testing.T) string {
	t.Helper()
	return m.Get(t, m.id).Tasks["vps"].State
}

// inside runs a shell command line in the machine with the given input, and returns its output.
func (m *machine) inside(t *testing.T, input, line string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(binary, "runs", "exec", "-i", m.id, "--gateway", m.Gateway, "--", "sh", "-c", line)
	cmd.Env = processes.CleanEnv()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	_ = cmd.Run() // the exit code is read from the state
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// want runs a command line in the machine and compares its output.
func (m *machine) want(t *testing.T, line, printed string) {
	t.Helper()
	if code, stdout, stderr := m.inside(t, "", line); code != 0 || strings.TrimSpace(stdout) != printed {
		t.Errorf("%s: exit code %d, %q, %q; want %q", line, code, stdout, stderr, printed)
	}
}

// TestMachine checks a machine on a node that opens no port: commands and OpenSSH reach it, it outlives its worker, and
// it ends on request.
func TestMachine(t *testing.T) {
	t.Parallel()
	m, client := startMachine(t)
	blob := make([]byte, 3<<20)
	_, _ = rand.Read(blob) // never fails
	local := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(local, blob, 0o600); err != nil {
		t.Fatal(err)
	}

	if code, stdout, stderr := m.inside(t, string(blob), "cat; echo told >&2; exit 7"); code != 7 || stdout != string(blob) || stderr != "told\n" {
		t.Errorf("exec exits with %d, prints %d bytes and %q", code, len(stdout), stderr)
	}
	do(t, m.Gateway, 0, "runs", "cp", local, m.id+":/copied")
	do(t, m.Gateway, 0, "runs", "cp", m.id+":/copied", local+".back")
	if back, err := os.ReadFile(local + ".back"); err != nil || !bytes.Equal(back, blob) {
		t.Errorf("copied there and back it has %d bytes, error %v", len(back), err)
	}
	cmd := client.SSH(nil, "cat; exit 3")
	cmd.Stdin = strings.NewReader("through the door\n")
	out, _ := cmd.Output() // the exit code is read from the state
	if cmd.ProcessState.ExitCode() != 3 || string(out) != "through the door\n" {
		t.Errorf("ssh exits with %d and prints %q", cmd.ProcessState.ExitCode(), out)
	}
	if stdout, _ := do(t, m.Gateway, 0, "vps", "status", m.id, "-o", "json"); !strings.Contains(stdout, "ssh -p 2222 vps."+m.id+"@machines.example.com") {
		t.Errorf("its status is %s", stdout)
	}
	testMachineOutlivesItsWorker(t, m)

	const startOfInit = "cut -d ' ' -f 22 /proc/1/stat"
	_, before, _ := m.inside(t, "", startOfInit)
	do(t, m.Gateway, 0, "vps", "restart", m.id)
	processes.Await(t, "it has been started again", func() bool {
		code, now, _ := m.inside(t, "", startOfInit)
		return code == 0 && now != before && m.state(t) == "running"
	})
	m.want(t, "wc -c </copied", fmt.Sprint(len(blob)))
	do(t, m.Gateway, 0, "vps", "stop", m.id)
	processes.Await(t, "the run has ended", func() bool { return m.Get(t, m.id).State == "completed" })
	if state := m.state(t); state != "stopped" {
		t.Errorf("the task is %s", state)
	}
	processes.Await(t, "no container is left", func() bool { return m.containers(t) == "" })
	if _, stderr := do(t, m.Gateway, 1, "runs", "exec", m.id); !strings.Contains(stderr, "ended") && !strings.Contains(stderr, "stopped") {
		t.Errorf("a session of a machine that has ended: %s", stderr)
	}
}

// containers lists the containers of the machine.
func (m *machine) containers(t *testing.T) string {
	t.Helper()
	out, err := outputOf(t, "docker", "ps", "-a", "--no-trunc", "--filter", "label=switchyard.run="+m.id, "--format", "{{.ID}}")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// testMachineOutlivesItsWorker kills the worker twice: once it returns before the loss is noticed, and once after the
// task was lost. The machine and its programs stay the same.
func testMachineOutlivesItsWorker(t *testing.T, m *machine) {
	m.want(t, "echo x >/began; (while true; do date +%s >/alive; sleep 0.2; done) >/dev/null 2>&1 & echo $! >/pid", "")
	before := m.containers(t)
	for _, lost := range []bool{false, true} {
		if err := m.worker.Cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		m.worker.Wait()
		if lost {
			processes.Await(t, "the task is lost", func() bool { return m.state(t) == "lost" })
			if state := m.Get(t, m.id).State; state != "running" {
				t.Errorf("the run is %s meanwhile", state)
			}
		}
		m.join()
		processes.Await(t, "the task runs, and can be entered", func() bool {
			code, _, _ := m.inside(t, "", "kill -0 $(cat /pid)")
			return code == 0 && m.state(t) == "running"
		})
		if now := m.containers(t); now != before {
			t.Errorf("containers %q, before %q", now, before)
		}
	}
	if task := m.Get(t, m.id).Tasks["vps"]; task.Attempt != 0 {
		t.Errorf("it is attempt %d", task.Attempt)
	}
}

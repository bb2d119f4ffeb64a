//go:build engines

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/dev/guestimage"
	"switchyard/dev/processes"
	"switchyard/dev/sessiontest"
	"switchyard/dev/testneeds"
)

// TestLongVirtualMachine checks that commands and OpenSSH reach a virtual machine, that it outlives its worker,
// keeps its disk across a restart, and that it can be ended by request, from inside, or with QEMU.
func TestLongVirtualMachine(t *testing.T) {
	testneeds.Long(t)
	image := guestimage.Build(t)
	folder := filepath.Dir(image)
	of := func(flags ...string) []string {
		return append([]string{"--backend", "qemu", "--memory", "256M"}, flags...)
	}
	begun := time.Now()
	m, client := startMachineOf(t, []string{"--vm-images", folder}, of("--vm-image", image)...)
	t.Cleanup(func() { // for a failed test, because the machine outlives its worker
		if run(t, "vps", "kill", m.id, "--gateway", m.Gateway); t.Failed() {
			processes.Await(t, "the machine has ended", func() bool { return m.Get(t, m.id).State != "running" })
		}
	})
	m.want(t, "true", "") // waits while the machine boots
	t.Logf("the first command has run %v after the machine was asked for", time.Since(begun).Round(time.Second))
	if stdout, _ := do(t, m.Gateway, 0, "vps", "status", m.id, "-o", "json"); !strings.Contains(stdout, `"vmIp": "10.0.2.15"`) || !strings.Contains(stdout, image) {
		t.Errorf("its status is %s", stdout)
	}
	m.want(t, "ip -4 -o addr show eth0 | grep -o '10[.]0[.]2[.]15'", "10.0.2.15")
	m.want(t, "hostname", m.id)

	local := filepath.Join(t.TempDir(), "blob")
	blob := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	if err := os.WriteFile(local, blob, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := m.inside(t, string(blob), "cat; echo told >&2; exit 7"); code != 7 || stdout != string(blob) || stderr != "told\n" {
		t.Errorf("exec exits with %d, prints %d bytes and %q", code, len(stdout), stderr)
	}
	do(t, m.Gateway, 0, "runs", "cp", local, m.id+":/data/copied")
	do(t, m.Gateway, 0, "runs", "cp", m.id+":/data/copied", local+".back")
	if back, err := os.ReadFile(local + ".back"); err != nil || !bytes.Equal(back, blob) {
		t.Errorf("copied there and back it has %d bytes, error %v", len(back), err)
	}
	testVirtualMachineByOpenSSH(t, m, client)
	testMachineOutlivesItsWorker(t, m)

	do(t, m.Gateway, 0, "vps", "restart", m.id)
	processes.Await(t, "it has been started again", func() bool {
		code, stdout, _ := m.inside(t, "", "cat /began || echo gone")
		return code == 0 && strings.TrimSpace(stdout) == "gone" // state that is not on the disk
	})
	m.want(t, "wc -c </data/copied", strconv.Itoa(len(blob)))
	do(t, m.Gateway, 0, "vps", "stop", m.id)
	m.ends(t, "completed", "stopped")
	awaitLogText(t, m.Gateway, m.id, "vps", "reboot: Power down") // printed on the console of the machine

	m.create(t, of("--vm-image", image)...)
	m.want(t, "poweroff", "")
	m.ends(t, "completed", "completed")
}

// ends waits for the end of the run, and compares the states of the run and of the machine.
func (m *machine) ends(t *testing.T, run, task string) {
	t.Helper()
	processes.Await(t, "the run has ended", func() bool { return m.Get(t, m.id).State == run })
	if state := m.state(t); state != task {
		t.Errorf("the machine is %s, want %s", state, task)
	}
}

func testVirtualMachineByOpenSSH(t *testing.T, m *machine, client *sessiontest.OpenSSH) {
	cmd := client.SSH(nil, "cat; exit 3")
	cmd.Stdin = strings.NewReader("through the door\n")
	out, _ := cmd.Output() // the exit code is read from the state
	if cmd.ProcessState.ExitCode() != 3 || string(out) != "through the door\n" {
		t.Errorf("ssh exits with %d and prints %q", cmd.ProcessState.ExitCode(), out)
	}
	local := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(local, []byte("by scp"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := client.Copy("scp", local, client.Target()+":/data/by-scp").CombinedOutput(); err != nil {
		t.Errorf("scp: %v\n%s", err, out)
	}
	m.want(t, "cat /data/by-scp", "by scp")
}

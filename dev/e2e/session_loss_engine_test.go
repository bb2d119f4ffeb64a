//go:build engines

package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/dev/processes"
	"switchyard/dev/sessiontest"
	"switchyard/dev/testneeds"
)

// TestLongPauseOfMachineOutlastsTimeout pauses and resumes the run of a machine, and then the machine itself, for longer than
// the machine's time-out, to which pauses do not count. After that the time-out ends the machine.
func TestLongPauseOfMachineOutlastsTimeout(t *testing.T) {
	testneeds.Long(t)
	f := startSessionFleet(t)
	const timeout = 30 * time.Second // a busy machine must pause it within this time
	id := f.submit(fmt.Sprintf("name: brief\ntasks: { box: { type: vps, spec: { image: %q, pullPolicy: never, network: none }, resources: { cores: 0 }, timeout: %s } }\n", f.image, timeout))
	f.await(id, "box", "running")
	f.must(t, "ann", "runs", "pause", id, "box")
	paused := time.Now()
	before := f.containers(t, id, "box")
	f.await(id, "box", "paused")
	f.must(t, "ann", "runs", "pause", id)
	if code, stdout, stderr := f.inside(t, 0, id, "box", "true"); code == 0 || !strings.Contains(stderr, "paused") {
		t.Errorf("a machine that is paused is entered: exit code %d, %q, %s", code, stdout, stderr)
	}
	time.Sleep(time.Until(paused.Add(timeout + time.Second)))
	f.must(t, "ann", "runs", "resume", id)
	if state := f.get(t, 0, id).Tasks["box"].State; state != "paused" {
		t.Errorf("after the pause it is %s", state)
	}
	f.must(t, "ann", "runs", "resume", id, "box")
	f.await(id, "box", "running")
	if now := f.containers(t, id, "box"); now != before || before == "" {
		t.Errorf("containers %q, before %q", now, before)
	}
	f.await(id, "box", "failed")
	if d := f.get(t, 0, id); d.Tasks["box"].Reason != "timeout" || d.Tasks["box"].Attempt != 0 || d.State != "failed" {
		t.Errorf("it has ended as %+v", d)
	}
	processes.Await(t, "no container is left", func() bool { return f.containers(t, id, "box") == "" })
}

const transferSize = 64 << 20

// testCutTransfersAreRepeated checks that a transfer whose link is cut in the middle ends with an error, leaves nothing
// on the node, and completes when it is repeated.
func testCutTransfersAreRepeated(t *testing.T, f *sessionFleet) {
	blob := largeFile(t)
	before := len(withDescendants(t, f.worker.Cmd.Process.Pid))
	client := as(f.ann, "box."+f.id)
	cmd := client.Copy("scp", "-l", "8000", blob, client.Target()+":/blob") // 1 MB/s
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	processes.Await(t, "a part of the file is there", func() bool {
		_, stdout, _ := f.inside(t, 0, f.id, "box", "wc -c </blob")
		n, _ := strconv.Atoi(strings.TrimSpace(stdout))
		return n > transferSize/16
	})
	f.relay.cut()
	_ = cmd.Wait() // the exit code is read from the state
	if code := cmd.ProcessState.ExitCode(); code <= 0 {
		t.Errorf("scp, whose link was cut, exits with %d: %s", code, out.String())
	}
	processes.Await(t, "nothing of it is left on the node", func() bool { return len(withDescendants(t, f.worker.Cmd.Process.Pid)) <= before })
	processes.Await(t, "the node is connected again", func() bool {
		code, _, _ := f.inside(t, 0, f.id, "box", "true")
		return code == 0
	})
	if text, err := client.Copy("scp", blob, client.Target()+":/blob").CombinedOutput(); err != nil {
		t.Fatalf("the second scp: %v\n%s", err, text)
	}
	back := filepath.Join(t.TempDir(), "back")
	f.must(t, "ann", "runs", "cp", f.id+"/box:/blob", back)
	equalFiles(t, blob, back)
}

// largeFile returns a file of transferSize bytes.
func largeFile(t *testing.T) string {
	t.Helper()
	data := make([]byte, transferSize)
	_, _ = rand.Read(data) // never fails
	path := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sizeOfFile returns the size of a file, or 0 if it does not exist.
func sizeOfFile(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func equalFiles(t *testing.T, a, b string) {
	t.Helper()
	one, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(b); err != nil || !bytes.Equal(one, other) {
		t.Errorf("%s has %d bytes, and %s others: %d bytes, %v", a, len(one), b, len(other), err)
	}
}

// testMachineOutlivesLeader kills the gateway that places tasks while rsync copies through it. The other gateway takes
// over, the machine continues, and rsync completes its transfer through the other gateway.
func testMachineOutlivesLeader(t *testing.T, f *sessionFleet) {
	if _, err := exec.LookPath("rsync"); err != nil {
		testneeds.Missing(t, "rsync is missing")
	}
	if code, _, stderr := f.inside(t, 0, f.id, "box", "sleep 100000 >/dev/null 2>&1 & echo $! >/pid"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	before, blob, target := f.containers(t, f.id, "box"), largeFile(t), t.TempDir()
	first, second := as(f.ann, "work."+f.id), as(f.openSSH("ann", 1), "work."+f.id)
	rsync := func(client *sessiontest.OpenSSH, options ...string) *exec.Cmd {
		ssh := client.SSH(nil).Args
		return exec.Command("rsync", append(options, "--partial", "--inplace", "-e", strings.Join(ssh[:len(ssh)-1], " "), blob, client.Target()+":"+target+"/blob")...)
	}
	cmd := rsync(first, "--bwlimit=2m")
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	processes.Await(t, "a part of the file is there", func() bool { return sizeOfFile(filepath.Join(target, "blob")) > transferSize/16 })
	if err := f.gateways[0].Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	f.relay.moveTo(f.urls[1])
	_ = cmd.Wait() // the exit code is read from the state
	if code := cmd.ProcessState.ExitCode(); code <= 0 {
		t.Errorf("rsync, whose gateway was killed, exits with %d: %s", code, out.String())
	}
	if sizeOfFile(filepath.Join(target, "blob")) == transferSize {
		t.Error("the file was whole before the gateway was killed")
	}
	processes.Await(t, "no rsync is left on the node", func() bool { return len(processesOf(target)) == 0 })

	f.gateways[1].Line(f.gateways[1].Stderr, "this process is the leader")
	if code, _, stderr := f.run(t, "ann", 1, "run", write(t, "name: later\ntasks: { a: { type: shell, spec: { command: 'true' }, resources: { cores: 0 } } }\n")); code != 0 {
		t.Errorf("a later run exits with %d: %s", code, stderr)
	}
	processes.Await(t, "the machine is entered through the other gateway", func() bool {
		code, _, _ := f.inside(t, 1, f.id, "box", "kill -0 $(cat /pid)")
		return code == 0
	})
	if now := f.containers(t, f.id, "box"); now != before {
		t.Errorf("containers %q, before %q", now, before)
	}
	if d := f.get(t, 1, f.id); d.Tasks["box"].State != "running" || d.Tasks["box"].Attempt != 0 || d.State != "running" {
		t.Errorf("the run is %+v", d)
	}
	if text, err := rsync(second).CombinedOutput(); err != nil {
		t.Fatalf("the second rsync: %v\n%s", err, text)
	}
	equalFiles(t, blob, filepath.Join(target, "blob"))
}

// processesOf returns the server processes with a text among their arguments.
func processesOf(text string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, _ := os.ReadFile(file); bytes.Contains(line, []byte(text)) && bytes.Contains(line, []byte("--server")) {
			found = append(found, string(line))
		}
	}
	return found
}

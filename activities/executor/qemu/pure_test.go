package qemu

import (
	"os"
	"strings"
	"testing"

	"switchyard/activities/executor"
)

func TestArgumentsOfMachines(t *testing.T) {
	p := plan{cpus: 3, memoryMB: 512}
	for name, c := range map[string]struct {
		program    Program
		f          folder
		has, hasNo []string
	}{
		"emulated": {
			Program{Path: "/usr/bin/qemu-system-x86_64", CPU: emulatedCPU, Sandbox: true}, "/state/vm/0123456789ab",
			[]string{
				"/usr/bin/qemu-system-x86_64 -name switchyard-0123456789ab ", " -nodefaults ", " -accel tcg,", " -cpu max ", " -smp 3 -m 512M ",
				"hostfwd=tcp:127.0.0.1:0-:22", ",file=/state/vm/0123456789ab/disk.qcow2 ", " -qmp unix:/state/vm/0123456789ab/qmp,server=on",
				" -qmp unix:/state/vm/0123456789ab/qmp2,server=on", " -sandbox on,",
			},
			[]string{"kvm"},
		},
		"with KVM":      {Program{KVM: true, CPU: kvmCPU}, "/d/x", []string{" -accel kvm ", " -cpu host "}, []string{"tcg", "-sandbox"}},
		"comma in path": {Program{}, "/a,b/x", []string{"file=/a,,b/x/disk.qcow2", "unix:/a,,b/x/qmp,server"}, nil},
	} {
		line := strings.Join(arguments(c.program, p, c.f), " ") + " "
		for _, part := range c.has {
			if !strings.Contains(line, part) {
				t.Errorf("%s: %q is missing in %s", name, part, line)
			}
		}
		for _, part := range c.hasNo {
			if strings.Contains(line, part) {
				t.Errorf("%s: %q is in %s", name, part, line)
			}
		}
	}
}

func TestMachineWithoutNetworkIsAlone(t *testing.T) {
	for isAlone, want := range map[bool]bool{true: true, false: false} {
		line := strings.Join(arguments(Program{}, plan{isAlone: isAlone}, "/d/x"), " ")
		if strings.Contains(line, ",restrict=on") != want || !strings.Contains(line, "dhcpstart=10.0.2.15,hostfwd=tcp:127.0.0.1:0-:22") {
			t.Errorf("alone: %v, and its arguments are %s", isAlone, line)
		}
	}
}

func TestVersionsOfQEMU(t *testing.T) {
	for text, want := range map[string]string{
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright": "7.2.22",
		"QEMU emulator version 10.0.2":                                           "10.0.2",
		"QEMU emulator version 5.2.0 (Debian)":                                   "5.2.0 is too old; install version 6",
		"bash: qemu: what":                                                       "cannot parse the QEMU version",
	} {
		got, err := versionOf(text)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestMemoryOfTheNodeIsChecked(t *testing.T) {
	const meminfo = "MemTotal:       24683264 kB\nMemFree:  100 kB\nMemAvailable:    2097152 kB\n"
	if err := checkMemory(meminfo, 2048); err != nil {
		t.Error(err)
	}
	err := checkMemory(meminfo, 2049)
	if err == nil || !strings.Contains(err.Error(), "has only 2048 MB of memory available; the virtual machine needs 2049 MB; lower resources.memoryMb") {
		t.Errorf("error %v", err)
	}
	for _, unknown := range []string{"", "MemAvailable: much", "MemTotal: 1 kB\n"} {
		if err := checkMemory(unknown, 1<<40); err != nil {
			t.Errorf("%q: %v", unknown, err)
		}
	}
}

func TestForwardedPortIsFound(t *testing.T) {
	const text = "Hub -1 (network):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n" +
		"  TCP[ESTABLISHED]    30    10.0.2.15 49000   1.1.1.1 22     0     0\r\n" +
		"  TCP[HOST_FORWARD]  12       127.0.0.1 38083       10.0.2.15    22     0     0\r\n"
	if port, err := parseForward(text); err != nil || port != 38083 {
		t.Errorf("port %d, error %v", port, err)
	}
	if _, err := parseForward("Hub -1"); err == nil {
		t.Error("a port is found where there is none")
	}
}

func TestHostnamesAreThoseOfTasks(t *testing.T) {
	for want, id := range map[string]executor.Identity{
		"desk":                  {Task: "desk", Index: -1},
		"my-big-desk-3":         {Task: "My_big.Desk", Index: 3},
		"machine":               {Task: "___", Index: -1},
		strings.Repeat("a", 63): {Task: strings.Repeat("a", 80), Index: -1},
	} {
		if got := hostname(id); got != want {
			t.Errorf("%+v: %q, want %q", id, got, want)
		}
	}
}

func TestEndingOfClassifiesExits(t *testing.T) {
	killed, terminated := executor.Result{ExitCode: 137, Signal: "SIGKILL"}, executor.Result{ExitCode: 143, Signal: "SIGTERM"}
	ofMemory := killed
	ofMemory.OOMKilled = true
	for name, c := range map[string]struct {
		x      exit
		reason string
		want   executor.Result
		text   string
		fault  bool
	}{
		"power-off":      {exit{0, true, false}, reasonGuest, executor.Result{}, "from inside", false},
		"without worker": {exit{0, true, false}, "", executor.Result{}, "was shut down", false},
		"panic":          {exit{0, true, false}, reasonPanic, executor.Result{ExitCode: 1}, "panicked", false},
		"SIGTERM":        {exit{0, true, false}, reasonSignal, terminated, "asked to quit on the node", false},
		"SIGKILL":        {exit{137, true, false}, "", killed, "SIGKILL", false},
		"memory":         {exit{137, true, true}, "", ofMemory, "exceeded its memory limit", false},
		"crash":          {exit{134, true, false}, "", executor.Result{}, "exit code 134: the last words", true},
		"unknown":        {exit{}, "", executor.Result{}, "the node may have been restarted", true},
	} {
		got := endingOf(c.x, c.reason, "the last words")
		text := got.notice
		if got.err != nil {
			text = got.err.Error()
		}
		if got.result != c.want || !strings.Contains(text, c.text) || (got.err != nil) != c.fault {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestMachineThatEndsAtOnceHasStarted(t *testing.T) {
	f := folder(t.TempDir())
	if err := os.WriteFile(f.file(exitFile), []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t.Context(), &Executor{}, executor.Attempt{}, record{}, f)
	defer m.giveUp(errClosed)
	if err := m.awaitStart(); err != nil || m.record.StartedAt.IsZero() {
		t.Errorf("started at %v, error %v", m.record.StartedAt, err)
	}
}

//go:build engines

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"switchyard/activities/executor/shell/cgroup"
	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// bareDebian returns an archive of a Debian with systemd and with little else. The first call on a machine downloads it.
func bareDebian(t *testing.T) (archive string) {
	t.Helper()
	if os.Geteuid() != 0 {
		testneeds.Missing(t, "a Debian boots only for root")
	}
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(user, "switchyard-debian")
	archive = filepath.Join(cache, "bookworm-1.tar")
	if _, err := os.Stat(archive); err == nil {
		return archive
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	command(t, tool(t, "debootstrap"), "--variant=minbase", "--include=systemd,systemd-sysv,dbus", "bookworm", root)
	command(t, "sh", "-ec", `cd "$1"
rm -rf var/cache/apt/archives/*.deb var/lib/apt/lists/* etc/machine-id
echo force-unsafe-io > etc/dpkg/dpkg.cfg.d/test
echo 'APT::Get::Assume-Yes "true";' > etc/apt/apt.conf.d/test
tar -cf "$2.new" .
mv "$2.new" "$2"`, "archive", root, archive)
	return archive
}

// command runs a tool and returns its output.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := outputOf(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// bareMachine is a Debian whose first process is systemd, with a network of its own. It ends with the test.
type bareMachine struct {
	t *testing.T
	// name is the name of the host, and root the folder with its files.
	name, root string
	// init is the process ID of its systemd.
	init int
	// exports holds the variables that the commands of its user have exported.
	exports string
}

// bootBareMachine boots a Debian from an archive.
func bootBareMachine(t *testing.T, archive, name string) *bareMachine {
	t.Helper()
	m := &bareMachine{t: t, name: name, root: t.TempDir()}
	command(t, "tar", "-C", m.root, "-xf", archive)
	m.write("etc/hostname", name+"\n")
	m.write("etc/machine-id", fmt.Sprintf("%032x\n", testneeds.FreePort(t)))
	own, err := cgroup.Own()
	if err != nil {
		t.Fatal(err)
	}
	group, err := os.MkdirTemp(own, "switchyard-test-"+name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		processes.Await(t, name+" has ended", func() bool { return exec.Command("find", group, "-depth", "-type", "d", "-delete").Run() == nil })
	})
	// --kill-child ends systemd with unshare, which ends with this process, and the kernel ends what systemd has started.
	boot := processes.StartForTest(t, exec.Command(tool(t, "unshare"), "--mount", "--net", "--pid", "--fork", "--kill-child", "--uts", "--ipc",
		"sh", filepath.Join("testdata", "boot.sh"), m.root, group))
	processes.Await(t, name+" has booted", func() bool {
		if boot.HasEnded() {
			t.Fatalf("%s does not boot: %s", name, boot.LastWords())
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", boot.Cmd.Process.Pid))
		m.init, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		out, _ := m.try("systemctl is-system-running")
		return strings.Contains(out, "running") || strings.Contains(out, "degraded")
	})
	return m
}

// connectMachines gives machines the addresses 10.0.0.1, 10.0.0.2 and so on, in a network to which nothing else is connected.
func connectMachines(t *testing.T, machines []*bareMachine) {
	t.Helper()
	for i, m := range machines {
		in := func(args ...string) {
			t.Helper()
			command(t, "nsenter", append([]string{"-t", strconv.Itoa(m.init), "-n", tool(t, "ip")}, args...)...)
		}
		if i == 0 {
			in("link", "add", "lan", "type", "bridge")
		} else {
			in("link", "add", "lan", "type", "veth", "peer", "name", m.name, "netns", strconv.Itoa(machines[0].init))
			command(t, "nsenter", "-t", strconv.Itoa(machines[0].init), "-n", "ip", "link", "set", m.name, "up", "master", "lan")
		}
		in("address", "add", fmt.Sprintf("10.0.0.%d/24", i+1), "dev", "lan")
		in("link", "set", "lan", "up")
	}
}

// try runs a script of shell as root in the machine.
func (m *bareMachine) try(script string) (string, error) {
	return outputOf(m.t, "nsenter", "-t", strconv.Itoa(m.init), "-m", "-p", "-u", "-i", "-n", "-C", "-r", "-w",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME=/root", "sh", "-euc", "cd\n"+m.exports+script)
}

// do runs a script of shell as root in the machine, and returns its output. Variables that it exports are set for later scripts.
func (m *bareMachine) do(script string) string {
	m.t.Helper()
	out, err := m.try(script)
	if err != nil {
		journal, _ := m.try("journalctl --no-pager -n 40 -u 'switchyard-*' -u temporal")
		m.t.Fatalf("on %s: %s: %v\n%s\n%s", m.name, script, err, out, journal)
	}
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "export ") {
			m.exports += line
		}
	}
	return out
}

// write writes a file of the machine.
func (m *bareMachine) write(path, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, path), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// text returns the content of a file of the machine, or "" if it does not exist.
func (m *bareMachine) text(path string) string {
	text, _ := os.ReadFile(filepath.Join(m.root, path))
	return string(text)
}

// state returns the state of a unit of the machine, such as "active".
func (m *bareMachine) state(unit string) string {
	out, _ := m.try("systemctl is-active " + unit)
	return strings.TrimSpace(out)
}

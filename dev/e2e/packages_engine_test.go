//go:build engines

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
	"switchyard/docs/site"
)

// installation is three bare machines whose user follows the page about installing.
type installation struct {
	t        *testing.T
	machines []*bareMachine
	// packages is the folder with a release in a folder for each version.
	packages string
}

// section returns what a page says before a heading of level 2, and the section below that heading.
func section(t *testing.T, page, heading string) (before, found string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}
	before, found, hasSection := strings.Cut(string(text), "\n## "+heading+"\n")
	if !hasSection {
		t.Fatalf("%s lacks the section %s", page, heading)
	}
	found, _, _ = strings.Cut(found, "\n## ")
	return before, found
}

// TestLongFleetFromPackages follows the pages about installing and upgrading on three bare machines: a first run within ten minutes, an
// upgrade under a running task, and a removal.
func TestLongFleetFromPackages(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	first, removal := section(t, "docs/operations/install.md", "Remove")
	_, upgrade := section(t, "docs/operations/upgrade.md", "With the packages")
	in := &installation{t: t, packages: t.TempDir()}
	release(t, in.packages, "0.1.0", "0.2.0")
	archive := bareDebian(t)
	for _, name := range []string{"yard", "n1", "n2"} {
		in.machines = append(in.machines, bootBareMachine(t, archive, name))
	}
	connectMachines(t, in.machines)
	yard, n1, n2 := in.machines[0], in.machines[1], in.machines[2]

	began := time.Now()
	in.download("0.1.0")
	out := in.follow(first)
	if took := time.Since(began); took > 10*time.Minute {
		t.Errorf("the first run has taken %s", took)
	} else {
		t.Logf("the first run has taken %s", took)
	}
	for _, want := range []string{"node n1 on n1", "node n2 on n2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no task has printed %q:\n%s", want, out)
		}
	}

	// The task ends some seconds after its node has begun to restart.
	n1.write("srv/seen", "")
	yard.write("root/long.yaml", "name: long\ntasks: { a: { type: shell, constraints: { targetNode: n1 }, spec: { command: "+
		"'echo began >> /srv/seen; until test -e /srv/open; do sleep 0.1; done; sleep 5; echo ended >> /srv/seen' } } }\n")
	yard.do("switchyard submit long.yaml")
	processes.Await(t, "the task runs", func() bool { return n1.text("srv/seen") == "began\n" })
	worker := func(m *bareMachine) string {
		out, _ := m.try("systemctl show -P MainPID -P ActiveState switchyard-worker@" + m.name) // a machine that ends fails elsewhere
		return out
	}
	before := map[*bareMachine]string{n1: worker(n1), n2: worker(n2)}
	began = time.Now()
	in.download("0.2.0")
	go func() {
		for worker(n1) == before[n1] && t.Context().Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		_ = os.WriteFile(filepath.Join(n1.root, "srv/open"), nil, 0o644) // without it, the watch below reaches its limit
	}()
	in.follow(upgrade)
	t.Logf("the upgrade has taken %s", time.Since(began))
	for m, old := range before {
		if now := worker(m); now == old || !slices.Contains(strings.Fields(now), "active") {
			t.Errorf("after the commands of the page the worker of %s is %q, before %q", m.name, now, old)
		}
	}
	yard.do("switchyard runs watch last")
	run := processes.ParseRun(t, yard.do("switchyard runs get last -o json 2>/dev/null"))
	if seen := n1.text("srv/seen"); seen != "began\nended\n" || run.Tasks["a"].Attempt != 0 {
		t.Errorf("the task printed %q in attempt %d", seen, run.Tasks["a"].Attempt)
	}
	for _, m := range in.machines {
		if version := m.do("dpkg-query -W -f '${Version}' switchyard"); version != "0.2.0-1" {
			t.Errorf("%s has the version %s", m.name, version)
		}
		if failed := m.do("journalctl -u 'switchyard-*' | grep 'Failed with' || true"); failed != "" {
			t.Errorf("services of %s have failed:\n%s", m.name, failed)
		}
	}

	in.follow(removal)
	yard.do("apt purge switchyard")
	for _, m := range []*bareMachine{yard, n2} {
		if left := m.do("grep -l switchyard /proc/[0-9]*/comm || true; find / /run /tmp -xdev -path /root -prune -o -name '*switchyard*' -print"); left != "" {
			t.Errorf("after the removal %s has\n%s", m.name, left)
		}
	}

	// There is no gateway any longer, so a node waits for one.
	const unit = "switchyard-worker@waiting"
	n1.do("systemctl stop switchyard-worker@n1; systemctl start --no-block " + unit)
	processes.Await(t, "the node waits", func() bool { return strings.Contains(n1.do("journalctl -u "+unit), "settings of worker") })
	n1.do("systemctl stop " + unit)
	if state := n1.state(unit); state != "inactive" {
		t.Errorf("a node that is stopped while it starts is %s", state)
	}
}

// release makes the packages of versions of the program under test, each in a folder.
func release(t *testing.T, folder string, versions ...string) {
	t.Helper()
	maker, manuals := filepath.Join(folder, "release"), filepath.Join(folder, "manuals")
	build := exec.Command("go", "build", "-o", maker, ".")
	build.Dir = filepath.Join(repository, "dev", "release")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build dev/release: %v\n%s", err, out)
	}
	for _, name := range []string{"man/switchyard.1", "completions/_switchyard", "completions/switchyard.bash", "completions/switchyard.fish"} {
		path := filepath.Join(manuals, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range versions {
		output := filepath.Join(folder, version)
		if err := os.Mkdir(output, 0o755); err != nil {
			t.Fatal(err)
		}
		command(t, maker, "-draft", "-version", version, "-commit", "0", "-source", repository, "-manuals", manuals, "-output", output,
			"linux/"+runtime.GOARCH+"="+binary)
	}
}

// download puts the files of a release into the folder of the user of each machine.
func (in *installation) download(version string) {
	in.t.Helper()
	for _, m := range in.machines {
		for _, name := range []string{"switchyard_" + version + "_" + runtime.GOARCH + ".deb", "SHA256SUMS"} {
			to := filepath.Join(m.root, "root", name)
			_ = os.Remove(to) // the checksums of an earlier release
			if err := os.Link(filepath.Join(in.packages, version, name), to); err != nil {
				in.t.Fatal(err)
			}
		}
	}
}

// follow runs the commands of a part of the page where it says, and returns their output.
func (in *installation) follow(part string) string {
	in.t.Helper()
	var output strings.Builder
	for _, f := range site.Parse("install.md", []byte(part)).Fences {
		where, isCommand := strings.CutPrefix(f.Info, "not-run: on ")
		switch {
		case f.File() != "":
			in.machines[0].write("root/"+f.File(), f.Text)
		case f.Language != "sh" || !isCommand:
			in.t.Errorf("the page has a block %s %s", f.Language, f.Info)
		case where == "yard, with the internet":
			in.fetchTemporal(f.Text)
		case where == "yard, with ssh":
			in.copyFiles(f.Text)
		default:
			for _, m := range in.machines {
				isGateway := m == in.machines[0]
				if where == m.name || where == "each machine" || strings.HasPrefix(where, "each gateway") && isGateway || strings.HasPrefix(where, "each node") && !isGateway {
					output.WriteString(m.do(f.Text))
				}
			}
		}
	}
	return output.String()
}

// fetchTemporal installs the tool that CI has built of the source of the release that the page downloads.
func (in *installation) fetchTemporal(script string) {
	in.t.Helper()
	version := regexp.MustCompile(`/(v[\d.]+)/temporal_cli`).FindStringSubmatch(script)
	ci, err := os.ReadFile(filepath.Join(repository, ".ci/run"))
	if err != nil || version == nil || !strings.Contains(string(ci), "/temporal@"+version[1]+"\n") {
		in.t.Errorf("the page downloads Temporal %v, and CI tests another one (%v)", version, err)
	}
	command(in.t, "cp", tool(in.t, "temporal"), filepath.Join(in.machines[0].root, "usr/local/bin/temporal"))
}

// copyFiles does what lines such as `scp FILE root@10.0.0.2:PATH` of the first machine do.
func (in *installation) copyFiles(script string) {
	in.t.Helper()
	for line := range strings.Lines(script) {
		found := regexp.MustCompile(`^scp (\S+) root@10\.0\.0\.([23]):(\S+)\n$`).FindStringSubmatch(line)
		if found == nil {
			in.t.Fatalf("a line is not `scp FILE root@ADDRESS:PATH`: %s", line)
		}
		to := in.machines[1]
		if found[2] == "3" {
			to = in.machines[2]
		}
		command(in.t, "cp", "-p", filepath.Join(in.machines[0].root, "root", found[1]), filepath.Join(to.root, found[3]))
	}
}

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/chaos/drill"
	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
	"switchyard/docs/site"
)

// revisionVariable is the environment variable with the revision whose state the tree takes over. The default is the
// last release, or the previous commit before the first release.
const revisionVariable = "UPGRADE_FROM"

// TestLongUpgrade takes over the state of the tree itself and of an earlier revision.
func TestLongUpgrade(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	t.Run("itself", func(t *testing.T) {
		t.Parallel()
		upgrade(t, binary)
	})
	t.Run("earlier", func(t *testing.T) {
		t.Parallel()
		upgrade(t, buildEarlier(t))
	})
	t.Run("fleet", func(t *testing.T) {
		t.Parallel()
		earlier, guide := buildEarlier(t), guideToUpgrade(t)
		for _, order := range permutations(drill.Roles) {
			t.Run(strings.Join(order, " "), func(t *testing.T) {
				o := drill.Options{Binary: binary, Earlier: earlier, Dir: t.TempDir(), Scale: drill.Fast, Report: logged{t}}
				if err := drill.Upgrade(t.Context(), o, order, guide); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// guideToUpgrade reads the page about upgrades and the service of workers.
func guideToUpgrade(t *testing.T) drill.Guide {
	t.Helper()
	const page = "docs/operations/upgrade.md"
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}
	g := drill.Guide{Commands: map[string]string{}}
	for _, f := range site.Parse(page, text).Fences {
		switch {
		case f.Language != "sh":
		case f.Info == "":
			g.Check += f.Text
		case strings.HasPrefix(f.Info, "not-run: on each gateway,"):
			g.Commands["gateways"] += f.Text
		case strings.HasPrefix(f.Info, "not-run: on each node,"):
			g.Commands["workers"] += f.Text
		case strings.HasPrefix(f.Info, "not-run: on each other machine"):
			g.Commands["clients"] += f.Text
		}
	}
	for _, setting := range serviceOfWorkers(t)["Environment"] {
		if strings.HasPrefix(setting, "SWITCHYARD_") {
			g.WorkerEnv = append(g.WorkerEnv, setting)
		}
	}
	return g
}

// TestCommandsOfTheGuideToUpgradeRun follows the commands of the page on machines that do nothing. TestLongUpgrade follows them in a
// fleet.
func TestCommandsOfTheGuideToUpgradeRun(t *testing.T) {
	t.Parallel()
	right := guideToUpgrade(t)
	rehearse := func(guide drill.Guide) error {
		return drill.Rehearse(t.Context(), drill.Options{Binary: binary, Earlier: "earlier", Dir: t.TempDir(), Scale: drill.Fast}, guide)
	}
	if err := rehearse(right); err != nil {
		t.Error(err)
	}
	for wrong, change := range map[string]*strings.Replacer{
		"another service": strings.NewReplacer("systemctl start switchyard-worker@", "systemctl start switchyard-node@"),
		"another package": strings.NewReplacer("apt install ./switchyard_", "apt install ./yard_"),
		"nothing waits":   strings.NewReplacer("systemctl start switchyard-gateway", "true"),
	} {
		guide := drill.Guide{Commands: map[string]string{}}
		for role, commands := range right.Commands {
			guide.Commands[role] = change.Replace(commands)
		}
		if err := rehearse(guide); err == nil {
			t.Errorf("%s: no command has failed", wrong)
		}
	}
}

// serviceOfWorkers returns the settings of the unit of workers in the packages.
func serviceOfWorkers(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "dev/release/files/switchyard-worker@.service"))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, isSetting := strings.Cut(strings.TrimSpace(line), "="); isSetting && !strings.HasPrefix(key, "#") {
			settings[key] = append(settings[key], value)
		}
	}
	return settings
}

// TestServiceOfWorkersKeepsTasks checks that a restart of the service, as in an upgrade, leaves what can run on to the next
// worker. By default the worker would drain, and systemd would end all processes of the service.
func TestServiceOfWorkersKeepsTasks(t *testing.T) {
	t.Parallel()
	settings := serviceOfWorkers(t)
	if !slices.Contains(settings["Environment"], "SWITCHYARD_ON_STOP=keep") || !slices.Equal(settings["KillMode"], []string{"process"}) {
		t.Errorf("the environment is %q, KillMode %q", settings["Environment"], settings["KillMode"])
	}
}

// permutations returns all orders of some words.
func permutations(words []string) (all [][]string) {
	if len(words) == 0 {
		return [][]string{nil}
	}
	for i, first := range words {
		for _, rest := range permutations(slices.Concat(words[:i], words[i+1:])) {
			all = append(all, append([]string{first}, rest...))
		}
	}
	return all
}

// git runs a git command in the repository and returns its output.
func git(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return outputOf(t, "git", append([]string{"-C", repository}, args...)...)
}

// buildEarlier builds the switchyard of the earlier revision and returns its path. Unless a revision is requested, it
// skips the test in a tree without an earlier revision, such as a shallow clone.
func buildEarlier(t *testing.T) string {
	t.Helper()
	revision := os.Getenv(revisionVariable)
	if revision == "" {
		revision = "HEAD~1"
		if release, err := git(t, "describe", "--tags", "--abbrev=0", "--match", "v*"); err == nil {
			revision = strings.TrimSpace(release)
		}
		if out, err := git(t, "rev-parse", "--verify", revision+"^{commit}"); err != nil {
			t.Skipf("this tree has no revision before it; name one with %s: %v\n%s", revisionVariable, err, out)
		}
	}
	// The revision cannot hand over its runs if its recorded histories do not replay any more. Before the first release, a
	// change may break them; it then records them anew.
	broken, err := git(t, "diff", "--name-only", "--diff-filter=MD", revision, "--", "workflows/testdata/histories")
	if err != nil {
		t.Fatalf("compare the histories with those of %s: %v\n%s", revision, err, broken)
	}
	if broken != "" {
		t.Skipf("histories of %s were recorded anew since: %s", revision, broken)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "source.tar")
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := git(t, "archive", "-o", archive, revision); err != nil {
		t.Fatalf("git archive %s: %v\n%s", revision, err, out)
	}
	if out, err := outputOf(t, "tar", "-xf", archive, "-C", source); err != nil {
		t.Fatalf("unpack %s: %v\n%s", revision, err, out)
	}
	program := filepath.Join(dir, "switchyard")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s does not build: %v\n%s", revision, err, out)
	}
	return program
}

// upgrade starts the stack of an earlier program, kills it while runs of all kinds are open, and checks that this
// tree's stack carries them on from the same file.
func upgrade(t *testing.T, earlier string) {
	dir := t.TempDir()
	db := filepath.Join(dir, "state.db")
	serve := []string{"--db", db, "--max-parallel", "20"}
	old := startDevWith(t, earlier, nil, serve...)
	submit := func(text string, args ...any) string {
		// More tasks wait at once than the machine may have cores.
		return old.Submit(t, "defaults: { resources: { cores: 0 } }"+fmt.Sprintf(text, args...))
	}

	ended := submit(`
name: ended
tasks:
  kept: { type: shell, spec: { command: 'echo x >> %[1]s/kept; echo "{\"n\": 7}" > $SWITCHYARD_OUTPUT' } }
  mended: { type: shell, dependsOn: [kept], retry: { maxRetries: 0 }, spec: { command: 'test -e %[1]s/mended' } }
  reads: { type: shell, dependsOn: [kept, mended], spec: { command: 'cat $SWITCHYARD_INPUT' } }
`, dir)
	do(t, old.Gateway, 1, "runs", "watch", ended)
	long := submit(`
name: long
tasks:
  before: { type: shell, spec: { command: 'echo x >> %[1]s/before' } }
  holds:
    type: shell
    dependsOn: [before]
    mutex: machine
    retry: { backoffMs: 10 }
    spec: { command: '%[2]s' }
  after: { type: shell, dependsOn: [holds], spec: { command: 'echo {$SWITCHYARD_ATTEMPT}' } }
`, dir, gate(dir, "long"))
	old.AwaitTask(t, long, "holds", "running")
	waits := submit(`
name: waits
tasks: { next: { type: shell, mutex: machine, spec: { command: 'true' } } }
`)
	old.AwaitTask(t, waits, "next", "queued")
	fan := submit(`
name: fan
tasks:
  each:
    type: shell
    parallel: 7
    concurrency: 2
    retry: { backoffMs: 10 }
    spec: { command: 'test $SWITCHYARD_INDEX -lt 3 || %[2]s; echo $SWITCHYARD_INDEX >> %[1]s/each; echo "{\"i\": $SWITCHYARD_INDEX}" > $SWITCHYARD_OUTPUT' }
  sums: { type: shell, dependsOn: [each], spec: { command: 'echo ${{ parent.each.outputs.map(o, o.i) }}' } }
`, dir, gate(dir, "fan"))
	large := submit(`
name: large
tasks:
  each:
    type: shell
    parallel: 1200
    batch: 100
    concurrency: 100
    retry: { backoffMs: 10 }
    spec: { command: 'test $SWITCHYARD_INDEX != 150 || %[2]s; echo $SWITCHYARD_INDEX >> %[1]s/many' }
  after: { type: shell, dependsOn: [each], spec: { command: 'echo ${{ parent.each.completed }}' } }
`, dir, gate(dir, "large"))
	approval := submit(`
name: approval
tasks:
  ask: { type: approval, spec: { message: 'ship it?' } }
  ship: { type: shell, dependsOn: [ask], spec: { command: 'true' } }
`)
	backoff := submit(`
name: backoff
tasks: { flaky: { type: shell, retry: { backoffMs: 60000 }, spec: { command: 'test $SWITCHYARD_ATTEMPT = 1' } } }
`)
	processes.Await(t, "the task backs off", func() bool { return len(old.Get(t, backoff).Tasks["flaky"].Error) > 0 })
	child := submit(`
name: parent
tasks:
  child: { type: run, spec: { definition: { name: child, defaults: { resources: { cores: 0 } }, tasks: { inner: { type: shell, retry: { backoffMs: 10 }, spec: { command: '%s' } } } } } }
  after: { type: shell, dependsOn: [child], spec: { command: 'true' } }
`, gate(dir, "child"))
	paused := submit(`
name: paused
tasks:
  first: { type: shell, spec: { command: '%s' } }
  second: { type: shell, dependsOn: [first], spec: { command: 'true' } }
  held: { type: shell, dependsOn: [first], spec: { command: 'true' } }
`, gate(dir, "paused"))

	old.AwaitTask(t, approval, "ask", "paused")
	old.AwaitTask(t, paused, "first", "running")
	do(t, old.Gateway, 0, "runs", "hold", paused, "held")
	do(t, old.Gateway, 0, "runs", "pause", paused)
	open(t, dir, "paused")
	old.AwaitTask(t, paused, "first", "completed")
	old.AwaitTask(t, child, "child", "running")
	processes.Await(t, "the first instances have ended", func() bool {
		// An instance without a recorded end would run again.
		ended := slices.DeleteFunc(instances(t, old.Gateway, fan, "each"), func(i instanceItem) bool { return i.State != "completed" })
		return len(ended) == 3 && lines(t, dir, "many") >= 100
	})
	old.Signal(syscall.SIGKILL)
	old.Wait()

	for _, name := range []string{"long", "fan", "large", "child", "mended"} {
		open(t, dir, name)
	}
	s := startDev(t, serve...)
	do(t, s.Gateway, 0, "runs", "approve", approval, "ask")
	do(t, s.Gateway, 0, "runs", "release", paused, "held")
	if state := s.Get(t, paused).State; state != "paused" {
		t.Errorf("the paused run is %s", state)
	}
	do(t, s.Gateway, 0, "runs", "resume", paused)
	do(t, s.Gateway, 0, "runs", "retry", ended)
	for _, id := range []string{ended, long, waits, fan, large, approval, backoff, child, paused} {
		do(t, s.Gateway, 0, "runs", "watch", id)
		d := s.Get(t, id)
		for name, task := range d.Tasks {
			if task.State != "completed" {
				t.Errorf("task %s of %s is %s: %s", name, id, task.State, task.Error)
			}
		}
	}
	for name, want := range map[string]int{"kept": 1, "before": 1, "each": 7} {
		if n := lines(t, dir, name); n != want {
			t.Errorf("%s ran %d times, want %d", name, n, want)
		}
	}
	if n := lines(t, dir, "many"); n < 1200 || n > 1300 {
		t.Errorf("the instances of 12 batches, of which one was cut off, ran %d times", n)
	}
	for _, said := range []struct{ id, task, want string }{
		{ended, "reads", `{"ancestors":{"kept":{"attempt":0,"exitCode":0,"state":"completed"},` +
			`"mended":{"attempt":0,"exitCode":0,"state":"completed"}},"kept":{"n":7}}` + "\n"},
		{long, "after", "{0}\n"},
		{fan, "sums", "[0,1,2,3,4,5,6]\n"},
		{large, "after", "1200\n"},
	} {
		if got := s.Get(t, said.id).Tasks[said.task].Result.Stdout; got != said.want {
			t.Errorf("%s of %s printed %q, want %q", said.task, said.id, got, said.want)
		}
	}
	s.Signal(syscall.SIGTERM)
	if code := s.Wait(); code != 0 {
		t.Errorf("dev exits with %d after SIGTERM", code)
	}
}

// lines counts the lines of a file, or returns 0 if it does not exist.
func lines(t *testing.T, dir, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

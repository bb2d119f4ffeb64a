package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// quoted returns the text in a file of the repository that the group of a pattern matches first.
func quoted(t *testing.T, file, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)" + pattern).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return string(found[1])
}

// TestReadme checks the README's promises: it is short, its first two commands are in its first 20 lines, and its definition
// runs unchanged in any folder.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 8<<10 {
		t.Errorf("the README has %d bytes; what is beyond 8 KiB belongs into docs", len(text))
	}
	top := strings.Join(strings.SplitN(string(text), "\n", 21)[:20], "\n")
	first, second := strings.Index(top, "go run . run dev/examples/build-and-deploy.yaml"), strings.Index(top, "go test ./...")
	if first < 0 || second < first {
		t.Error("the first 20 lines do not hold the two commands in order")
	}
	definition := quoted(t, "README.md", "```yaml nightly.yaml\n(.*?)```")
	code, stdout, stderr := run(t, "run", write(t, definition), "-o", "json")
	nightly := processes.ParseRun(t, stdout)
	if code != 0 || nightly.State != "completed" {
		t.Fatalf("the definition ends with exit code %d: %s", code, stderr)
	}
	for task, want := range map[string]string{"test": "completed", "build": "completed", "deploy": "completed", "notify-failure": "skipped"} {
		if nightly.Tasks[task].State != want {
			t.Errorf("%s is %s, want %s", task, nightly.Tasks[task].State, want)
		}
	}
	if text := nightly.Tasks["deploy"].Result.Stdout; !strings.HasPrefix(text, "version 1.") {
		t.Errorf("deploy has printed %q", text)
	}
}

// TestGuideOfFleet runs the commands of the guide to fleets, with the gateway started twice. Then it starts a
// leader beside them, which must refuse, and a worker with the settings of its file.
func TestGuideOfFleet(t *testing.T) {
	t.Parallel()
	const guide = "docs/operations/fleet.md"
	commands, settings := quoted(t, guide, "```sh not-run: [^\n]*\n(.*?)```"), quoted(t, guide, "```yaml settings\n(.*?)```")
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	s := startDev(t, "--nodes", "0", "--store", store)
	env := []string{"TEMPORAL_ADDRESS=" + s.Temporal, "HOME=" + dir}
	spool := func() string { return "SWITCHYARD_SPOOL_DIR=" + t.TempDir() }
	var gateway string
	ran := 0
	for line := range strings.Lines(commands) {
		line, _, _ = strings.Cut(line, "#")
		args := strings.Fields(line)
		if len(args) == 0 || args[0] != "switchyard" {
			continue
		}
		ran++
		switch args = args[1:]; args[0] {
		case "gateway":
			for range 2 {
				p := startWith(t, append(slices.Clone(env), "SWITCHYARD_ADDRESS=127.0.0.1:0", "SWITCHYARD_STORE="+store), args...)
				gateway = p.Field("Gateway")
			}
			env = append(slices.Clone(env), "SWITCHYARD_GATEWAY="+gateway)
		case "worker":
			p := startWith(t, append(slices.Clone(env), spool()), args...)
			p.Line(p.Stdout, "Node")
		default:
			p := startWith(t, env, args...)
			if code := p.Wait(); code != 0 {
				t.Fatalf("%s exits with %d: %s", line, code, p.Stderr.String())
			}
		}
	}
	if ran < 15 {
		t.Errorf("only %d commands ran", ran)
	}

	leader := startWith(t, append(slices.Clone(env), "SWITCHYARD_ADDRESS=127.0.0.1:0", "SWITCHYARD_STORE="+store), "gateway", "--role", "leader")
	if code := leader.Wait(); code != 3 || !strings.Contains(leader.Stderr.String(), "--role auto") {
		t.Errorf("a second leader exits with %d: %s", code, leader.Stderr)
	}

	file := filepath.Join(dir, "switchyard.yaml")
	settings = strings.ReplaceAll(settings, "http://yard:7280", gateway)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startWith(t, append(slices.Clone(env), "SWITCHYARD_GATEWAY=", spool()), "worker", "--config", file, "--name", "from-file")
	p.Line(p.Stdout, "Node")
	if line := p.Line(p.Stderr, "settings of worker"); !strings.Contains(line, `max-parallel="8 (`+file+`:4)"`) || !strings.Contains(line, "TEMPORAL_ADDRESS") {
		t.Errorf("the settings are logged as %s", line)
	}
	n := ask[nodeItem](t, gateway, "nodes", "get", "from-file")
	if !slices.Equal(n.Labels, []string{"fast", "server"}) {
		t.Errorf("the node from a file is %+v", n)
	}
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 0 {
		t.Errorf("the worker exits with %d", code)
	}
}

// TestGuideOfAgents runs the commands of the guide to agents. The model listens on a free port.
func TestGuideOfAgents(t *testing.T) {
	t.Parallel()
	const commands = "\n```sh not-run: needs the repository\n%s -address 127.0.0.1:7411 &\nswitchyard %s\n```"
	start := quoted(t, "docs/agents.md", fmt.Sprintf(commands, `(go run [^\n]*)`, `run \S+`))
	use := quoted(t, "docs/agents.md", fmt.Sprintf(commands, `go run [^\n]*`, `(run \S+)`))
	address := fmt.Sprintf("127.0.0.1:%d", testneeds.FreePort(t))
	// The model that `go run` starts would outlive it.
	model := exec.Command("go", append(strings.Fields(start)[1:], "-address", address)...)
	model.Dir, model.Env, model.SysProcAttr = repository, processes.CleanEnv(), &syscall.SysProcAttr{Setpgid: true}
	if err := model.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-model.Process.Pid, syscall.SIGKILL)
		_ = model.Wait() // it was killed
	})
	processes.Await(t, "the model listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	code, _, stderr := run(t, append(strings.Fields(use), "--input", "provider=http://"+address)...)
	if code != 0 || !regexp.MustCompile(`run agents-\S+ completed`).MatchString(stderr) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

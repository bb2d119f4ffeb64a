package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
)

// list is a list as JSON prints it.
type list[Item any] struct {
	Items         []Item `json:"items"`
	NextPageToken string `json:"nextPageToken"`
}

type nodeItem struct {
	Labels       []string          `json:"labels"`
	Capabilities map[string]string `json:"capabilities"`
}

type eventItem struct {
	At, Task, Event, Node, Detail string
	Attempt                       int
}

// ask runs a command on a gateway and decodes its JSON output.
func ask[Answer any](t *testing.T, gateway string, args ...string) Answer {
	t.Helper()
	code, stdout, stderr := run(t, append(args, "--gateway", gateway, "-o", "json")...)
	var a Answer
	if code != 0 {
		t.Fatalf("%v exits with %d: %s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &a); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, processes.Tail(stdout))
	}
	return a
}

// do runs a command on a gateway and checks its exit code.
func do(t *testing.T, gateway string, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := run(t, append(args, "--gateway", gateway)...)
	if code != want {
		t.Errorf("%v exits with %d, want %d: %s%s", args, code, want, stdout, stderr)
	}
	return stdout, stderr
}

// TestReadmeFleet runs the commands of the README section "A fleet", with the gateway started twice. Then it starts a
// leader beside them, which must refuse, and a worker with the settings of the section's file.
func TestReadmeFleet(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n## A fleet\n.*?```sh\n(.*?)```").FindSubmatch(text)
	config := regexp.MustCompile("(?s)\n## A fleet\n.*?```yaml\n(.*?)```").FindSubmatch(text)
	if block == nil || config == nil {
		t.Fatal("the section has no commands, or no file of settings")
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	s := startDev(t, "--nodes", "0", "--store", store)
	env := []string{"TEMPORAL_ADDRESS=" + s.Temporal, "HOME=" + dir} // where "last" is kept
	spool := func() string { return "SWITCHYARD_SPOOL_DIR=" + t.TempDir() }
	var gateway string
	ran := 0
	for line := range strings.Lines(string(block[1])) {
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
	settings := strings.ReplaceAll(string(config[1]), "http://yard:7280", gateway)
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

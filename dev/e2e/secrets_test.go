package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/dev/processes"
)

// leaks finds secrets in places where they must not be. The names of the checks say what was searched.
type leaks struct {
	t     *testing.T
	forms map[string]string // the texts to search for, by description
	// seen holds the markers that were found beside the secrets. They prove that the search covered what the task left.
	seen map[string]bool
}

func newLeaks(t *testing.T, values ...string) *leaks {
	l := &leaks{t: t, forms: map[string]string{}, seen: map[string]bool{}}
	for _, value := range values {
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			l.forms["the secret "+line] = line
			for before := range 3 {
				encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + line))
				l.forms[fmt.Sprintf("base64 of %s after %d bytes", line, before)] = encoded[4 : len(encoded)-4]
			}
		}
	}
	return l
}

func (l *leaks) search(name, text string) {
	l.t.Helper()
	for form, needle := range l.forms {
		if at := strings.Index(text, needle); at >= 0 {
			l.t.Errorf("%s has %s: %q", name, form, text[max(0, at-60):min(len(text), at+60)])
		}
	}
	for _, marker := range strings.SplitAfter(text, "marker-")[1:] {
		l.seen[strings.FieldsFunc(marker, func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' })[0]] = true
	}
}

// searchFolder searches all files below a folder, except below folders with the given name.
func (l *leaks) searchFolder(dir, but string) {
	l.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // deleted meanwhile
		case d.IsDir() && but != "" && strings.HasPrefix(d.Name(), but):
			return fs.SkipDir
		case d.Type().IsRegular():
			if data, err := os.ReadFile(path); err == nil {
				l.search(path, string(data))
			}
		}
		return nil
	})
	if err != nil {
		l.t.Error(err)
	}
}

// searchProcesses searches the command lines of all processes.
func (l *leaks) searchProcesses() {
	l.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		l.t.Logf("no processes to look at: %v", err)
	}
	for _, path := range files {
		if data, err := os.ReadFile(path); err == nil {
			l.search(path, string(data))
		}
	}
}

// searchHistories searches the histories of a run and of its children.
func (l *leaks) searchHistories(address string, ids ...string) {
	l.t.Helper()
	c, err := client.Dial(client.Options{HostPort: address})
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	for _, id := range ids {
		events := 0
		for it := c.GetWorkflowHistory(context.Background(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); events++ {
			e, err := it.Next()
			if err != nil {
				l.t.Fatal(err)
			}
			l.search(fmt.Sprintf("event %d of %s", e.GetEventId(), id), protojson.Format(e))
			for _, p := range e.GetActivityTaskScheduledEventAttributes().GetInput().GetPayloads() {
				l.search("a payload", string(p.GetData()))
			}
			for _, p := range e.GetActivityTaskCompletedEventAttributes().GetResult().GetPayloads() {
				l.search("a payload", string(p.GetData()))
			}
		}
		if events == 0 {
			l.t.Errorf("%s has no history", id)
		}
	}
}

const (
	envSecret    = "hunter2-correct-horse-battery"
	storedSecret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	fileSecret   = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END KEY-----"
)

// telling reveals its secrets in every way that a task has. It makes its first attempt fail when a file says so, and
// its second one succeed.
const telling = `echo "marker-log $TOKEN"; echo "$KEY" >&2
test "$STORED" = "ghp_16C7e42F292c6912E7710c838347""Ae178B4a" && echo "$STORED" >&2 || exit 7
echo "$TOKEN" | base64; printf '%s' "x$TOKEN" | base64
printf 'half %.8s' "$TOKEN"; sleep 0.05; printf '%s\n' "${TOKEN#????????}"
if test "$SWITCHYARD_ATTEMPT" = 1; then cat "$SWITCHYARD_CHECKPOINT"; fi
printf '{"token": "%s", "stored": "x%sy", "of": "marker-output"}' "$TOKEN" "$STORED" >"$SWITCHYARD_OUTPUT"
echo "told=marker-context $TOKEN" >"$SWITCHYARD_CONTEXT_UPDATE"
echo "marker-checkpoint $TOKEN" >"$SWITCHYARD_CHECKPOINT"
if test "$SWITCHYARD_ATTEMPT" = 0; then
  while ! test -e "$GO/go"; do sleep 0.05; done
  echo "marker-error $TOKEN" >&2
  exit 3
fi
`

// TestSecretsStayWithTheTask lets tasks reveal their secrets in every way, and searches everything that they left and
// that the system has kept.
func TestSecretsStayWithTheTask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	scratch, spool, keys := folder("scratch"), folder("spool"), folder("keys")
	if err := os.WriteFile(filepath.Join(keys, "key"), []byte(fileSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startDev(t, "--nodes", "0", "--db", filepath.Join(dir, "temporal.db"), "--log-level", "debug")
	w := startWith(t, []string{"TEMPORAL_ADDRESS=" + s.Temporal, "SWITCHYARD_GATEWAY=" + s.Gateway, "DEPLOY_TOKEN=" + envSecret, "DEPLOY_OTHER=plain", "OTHER=x"},
		"worker", "--name", "box", "--spool-dir", spool, "--scratch-dir", scratch, "--log-level", "debug", "--metrics-address", "none",
		"--allow-secret", "env:DEPLOY_TOKEN,file:"+keys+"/*", "--pass-env", "DEPLOY_*")
	w.Line(w.Stdout, "Store")
	found := newLeaks(t, envSecret, fileSecret, storedSecret)
	if err := os.WriteFile(filepath.Join(keys, "stored"), []byte(storedSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, "secrets", "set", "deploy", "--from-file", filepath.Join(keys, "stored"), "--gateway", s.Gateway)
	if found.search("what secrets set prints", stdout+stderr); code != 0 {
		t.Fatalf("secrets set exits with %d: %s", code, stderr)
	}

	id := s.Submit(t, fmt.Sprintf(`
name: secrets
defaults:
  type: shell
  retry: { maxRetries: 0 }
  secretEnv: { TOKEN: "env:DEPLOY_TOKEN" }
tasks:
  tell:
    secretEnv: { KEY: "file:%[1]s/key", STORED: "store:deploy" }
    env: { GO: %[2]s }
    retry: { maxRetries: 1, backoffMs: 1 }
    spec: { command: &tell %[3]q }
  after:
    dependsOn: tell
    env: { TOLD: "${{ parent.tell.output.token }} ${{ workflow.context.told }}" }
    spec: { command: 'test "$TOLD" = "*** marker-context ***" && cat "$SWITCHYARD_INPUT"' }
  inherits: { spec: { command: 'test -z "${DEPLOY_TOKEN:-}" && test "$DEPLOY_OTHER" = plain && test -n "$TOKEN"' } }
  some:
    parallel: 3
    batch: 3
    spec: { command: 'echo "$SWITCHYARD_INDEX $TOKEN"; echo "token=$TOKEN" >"$SWITCHYARD_OUTPUT"' }
  unknown: { secretEnv: { X: "store:unknown" }, continueOnError: true, spec: { command: 'true' } }
  missing: { secretEnv: { X: "file:%[1]s/none" }, continueOnError: true, spec: { command: 'true' } }
`, keys, dir, telling))
	processes.Await(t, "the task has told its secrets", func() bool {
		d := s.Get(t, id)
		return d.Tasks["tell"].State == "running" && strings.Contains(logOf(t, s.Gateway, id, "tell"), "half")
	})
	found.searchProcesses()
	found.searchFolder(scratch, "attempt-") // except the task's own files
	found.searchFolder(dir+"/temporal.db.store", "")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = run(t, "runs", "watch", id, "--gateway", s.Gateway)
	if code != 0 {
		t.Errorf("watch exits with %d: %s", code, stderr)
	}
	found.search("what watch prints", stdout+stderr)
	d := s.Get(t, id)
	// Some base64 characters of the second line also encode the x.
	if got := d.Tasks["tell"].Result; !strings.HasPrefix(got.Stdout, "marker-log ***\n***\n") ||
		!strings.HasSuffix(got.Stdout, "\nhalf ***\nmarker-checkpoint ***\n") || got.Output["token"] != "***" || got.Output["stored"] != "x***y" {
		t.Errorf("the task printed %q, its output is %v", got.Stdout, got.Output)
	}
	if d.Context["told"] != "marker-context ***" {
		t.Errorf("the context is %v", d.Context)
	}
	for task, want := range map[string]string{
		"missing": "secretEnv.X: secret file:" + keys + "/none: no such file or directory",
	} {
		if got := d.Tasks[task]; got.Reason != "bad_spec" || got.Error != want || got.Attempt != 0 {
			t.Errorf("%s: %+v, want %s", task, got, want)
		}
	}
	if got := d.Tasks["unknown"]; got.Reason != "bad_spec" || !strings.HasPrefix(got.Error, "secretEnv.X: secret store:unknown: ") {
		t.Errorf("unknown: %+v", got)
	}
	for _, args := range [][]string{
		{"runs", "get", id, "-o", "json"}, {"runs", "get", id, "tell"}, {"runs", "events", id, "-o", "json"}, {"runs", "logs", id},
		{"runs", "explain", id, "tell"}, {"runs", "timeline", id}, {"runs", "list", "-o", "json"}, {"nodes", "get", "box", "-o", "json"},
	} {
		code, stdout, stderr := run(t, append(args, "--gateway", s.Gateway)...)
		if code != 0 {
			t.Errorf("%v exits with %d: %s", args, code, stderr)
		}
		found.search(strings.Join(args, " "), stdout+stderr)
		if args[0] == "nodes" && !strings.Contains(stdout, `"env:DEPLOY_TOKEN"`) {
			t.Errorf("%v does not show which secrets the node offers: %s", args, stdout)
		}
	}
	found.searchHistories(s.Temporal, id)
	for _, p := range []*processes.Program{w, s.Program} {
		p.Signal(syscall.SIGINT)
		p.Wait()
		found.search("the worker's or the gateway's own log", p.Stdout.String()+p.Stderr.String())
	}
	for _, place := range []string{scratch, spool, filepath.Join(dir, "temporal.db.store"), filepath.Join(dir, "temporal.db.spool")} {
		found.searchFolder(place, "")
	}
	databases, err := filepath.Glob(filepath.Join(dir, "temporal.db*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range databases {
		if data, err := os.ReadFile(path); err == nil {
			found.search(path, string(data))
		}
	}
	for _, marker := range []string{"log", "output", "context", "error", "checkpoint"} {
		if !found.seen[marker] {
			t.Errorf("marker-%s, which stands beside a secret, was found nowhere: the search is void", marker)
		}
	}
}

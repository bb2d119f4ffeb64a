package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourceComesToEveryNode submits a folder as a user with a token. The tasks on each of three nodes find its files, also in a rerun
// after the folder has changed, and nothing is submitted without it.
func TestSourceComesToEveryNode(t *testing.T) {
	t.Parallel()
	s := startLocked(t, "--nodes", "3")
	user := filepath.Join(s.dir, "user")
	s.token(t, user, "--name", "ann", "--role", "user")
	viewer := filepath.Join(s.dir, "viewer")
	s.token(t, viewer, "--name", "bob", "--role", "viewer")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	definition := file("ci.yaml", `
name: src
source: app
tasks:
  first:
    type: shell
    constraints: { targetNode: local-1 }
    spec: { command: "cat hello.txt && ls && echo other > hello.txt && echo made > made && test -w ." }
    artifacts: { out: [{ name: made, path: made }] }
  second:
    type: shell
    dependsOn: [first]
    constraints: { targetNode: local-2 }
    artifacts: { in: [{ from: first.made, path: from }] }
    spec: { command: "cat ../hello.txt ../from/made", workingDirectory: deep }
  third:
    type: shell
    parallel: 2
    batch: 2
    dependsOn: [first]
    constraints: { targetNode: local-3 }
    spec: { command: "cat hello.txt && ! test -e made" }
`)
	file("app/hello.txt", "hello")
	file("app/deep/x", "")
	file("app/.gitignore", "junk\n")
	file("app/junk", "")
	const want = "hello"
	check := func(id string) {
		t.Helper()
		run := s.End(t, id)
		if run.State != "completed" {
			t.Fatalf("the run is %s: %s", run.State, run.Error)
		}
		for task, out := range map[string]string{"first": want + "deep\nhello.txt\n", "second": want + "made\n"} {
			if got := run.Tasks[task].Result.Stdout; got != out {
				t.Errorf("%s has printed %q, want %q", task, got, out)
			}
		}
	}
	stdout, stderr := do(t, s.Gateway, 0, "submit", definition, "--token-file", user, "--idempotency-key", "k")
	id := strings.TrimSpace(stdout)
	if !strings.Contains(stderr, "app: 3 files, 10 B") {
		t.Errorf("it says %q", stderr)
	}
	check(id)
	if text, _ := s.do(t, 0, "runs", "get", id); !strings.Contains(text, "source  3 files, 10 B, sha256:") {
		t.Errorf("the run is shown as %s", text)
	}
	// The same request starts no other run, one with other files is refused, and a rerun has the first ones.
	if again, _ := do(t, s.Gateway, 0, "submit", definition, "--token-file", user, "--idempotency-key", "k"); strings.TrimSpace(again) != id {
		t.Errorf("the same request has started %s", again)
	}
	file("app/hello.txt", "changed")
	if _, stderr := do(t, s.Gateway, 1, "submit", definition, "--token-file", user, "--idempotency-key", "k"); !strings.Contains(stderr, "idempotency key") {
		t.Errorf("other files under the same key: %s", stderr)
	}
	rerun, _ := do(t, s.Gateway, 0, "runs", "rerun", id, "--token-file", user)
	check(strings.TrimSpace(rerun))
	// A folder given by flag goes first.
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "hello.txt"), []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(other, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	flagged, _ := do(t, s.Gateway, 0, "submit", definition, "--source", other, "--token-file", user)
	check(strings.TrimSpace(flagged))
	for what, args := range map[string][]string{
		"role user":             {"submit", definition, "--token-file", viewer},
		"no such file":          {"submit", definition, "--source", filepath.Join(dir, "none"), "--token-file", user},
		"source-limit-gb":       {"submit", definition, "--source-limit-gb", "0.00001", "--token-file", user},
		"submit --workflow src": {"workflows", "put", definition, "--token-file", s.admin},
		"not a directory":       {"submit", definition, "--source", definition, "--token-file", user},
		"leads out of the":      {"submit", definition, "--source", linkOut(t), "--token-file", user},
	} {
		code, _, stderr := run(t, append(args, "--gateway", s.Gateway)...)
		if code == 0 || !strings.Contains(stderr, what) {
			t.Errorf("%v ends with %d: %s", args, code, stderr)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Gateway+"/v1/runs", strings.NewReader(`{"document": "name: a\nsource: app\ntasks: {a: {type: shell, spec: {command: x}}}"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if refusal, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(string(refusal), "switchyard submit") {
		t.Errorf("a request without the files: %s, %s, %v", res.Status, refusal, err)
	}
}

// linkOut returns a folder with a link that leads out of it.
func linkOut(t *testing.T) string {
	dir := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(dir, "etc")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCommitComesToEveryNode runs a stored workflow with the files of a git repository that its first task changes. The tasks on other
// nodes, retries and reruns have the commit of the first one; a new run has the new one.
func TestCommitComesToEveryNode(t *testing.T) {
	t.Parallel()
	s := startLocked(t, "--nodes", "3")
	repository := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.MkdirAll(filepath.Join(repository, "app"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repository, "app", "hello.txt"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	commit := git("rev-parse", "HEAD")
	file := filepath.Join(t.TempDir(), "ci.yaml")
	text := `
name: src
source: { git: "file://` + repository + `", ref: main, path: app }
tasks:
  first:
    type: shell
    constraints: { targetNode: local-1 }
    env: { AT: "` + repository + `" }
    spec: { command: "cat hello.txt && printf other > $AT/app/hello.txt && git -C $AT -c user.name=a -c user.email=a@b commit --allow-empty -aqm next && test ! -e .git" }
  second:
    type: shell
    dependsOn: [first]
    constraints: { targetNode: local-2 }
    retry: { maxRetries: 1, backoffMs: 10 }
    spec: { command: "cat hello.txt; test $SWITCHYARD_ATTEMPT -gt 0" }
  third:
    type: shell
    parallel: 2
    dependsOn: [first]
    constraints: { targetNode: local-3 }
    spec: { command: "test $(cat hello.txt) = hello" }
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s.do(t, 0, "workflows", "put", file)
	stdout, _ := s.do(t, 0, "submit", "--workflow", "src")
	id := strings.TrimSpace(stdout)
	run := s.End(t, id)
	if run.State != "completed" || run.Tasks["second"].Result.Stdout != "hello" {
		t.Fatalf("the run is %s: %s; second has read %q", run.State, run.Error, run.Tasks["second"].Result.Stdout)
	}
	if text, _ := s.do(t, 0, "runs", "get", id); !strings.Contains(text, "source  1 file, 5 B, sha256:") || !strings.Contains(text, ", commit "+commit) {
		t.Errorf("the run is shown as %s", text)
	}
	rerun, _ := s.do(t, 0, "runs", "rerun", id)
	if run := s.End(t, strings.TrimSpace(rerun)); run.State != "completed" || run.Tasks["first"].Result.Stdout != "hello" {
		t.Errorf("the rerun is %s, and has read %q", run.State, run.Tasks["first"].Result.Stdout)
	}
	fresh, _ := s.do(t, 0, "submit", "--workflow", "src")
	if run := s.End(t, strings.TrimSpace(fresh)); run.Tasks["first"].Result.Stdout != "other" {
		t.Errorf("a new run has read %q", run.Tasks["first"].Result.Stdout)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "ref: main", "ref: none", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	wrong, _ := s.do(t, 0, "submit", file)
	if run := s.End(t, strings.TrimSpace(wrong)); run.State != "failed" || run.Tasks["first"].Reason != "bad_spec" || !strings.Contains(run.Tasks["first"].Error, "no such branch or tag") {
		t.Errorf("with a wrong ref: %s, %+v", run.State, run.Tasks["first"])
	}
}

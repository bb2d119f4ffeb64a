package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
)

// lockedStack is a stack that requires tokens.
type lockedStack struct {
	*processes.Stack
	dir string
	// admin is the file with the first token.
	admin string
}

func startLocked(t *testing.T, args ...string) *lockedStack {
	t.Helper()
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	admin := db + ".store.admin-token"
	s := startDev(t, append([]string{"--auth", "tokens", "--db", db}, args...)...)
	token, err := os.ReadFile(admin)
	if err != nil {
		t.Fatal(err)
	}
	s.Token = strings.TrimSpace(string(token))
	return &lockedStack{s, dir, admin}
}

// do runs a command as an admin.
func (s *lockedStack) do(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	return do(t, s.Gateway, want, append(args, "--token-file", s.admin)...)
}

// token creates a token in a file and returns its ID.
func (s *lockedStack) token(t *testing.T, file string, args ...string) (id string) {
	t.Helper()
	stdout, _ := s.do(t, 0, append([]string{"tokens", "create", "-o", "json"}, args...)...)
	var made struct {
		Secret string
		Token  struct{ Id string }
	}
	if err := json.Unmarshal([]byte(stdout), &made); err != nil || made.Secret == "" || made.Token.Id == "" {
		t.Fatalf("%v: %s", err, stdout)
	}
	fresh := file + ".new"
	if err := os.WriteFile(fresh, []byte(made.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, file); err != nil {
		t.Fatal(err)
	}
	return made.Token.Id
}

// awaitLog waits until the log of a task of a run meets a condition.
func (s *lockedStack) awaitLog(t *testing.T, id, task, what string, holds func(log string) bool) {
	t.Helper()
	processes.AwaitText(t, "the log of "+task+" "+what, func() string {
		stdout, _ := s.do(t, 0, "runs", "logs", id, task)
		return stdout
	}, holds)
}

// awaitLogText waits until the log of a task of a run contains a text.
func (s *lockedStack) awaitLogText(t *testing.T, id, task, text string) {
	t.Helper()
	s.awaitLog(t, id, task, fmt.Sprintf("contains %q", text), func(log string) bool { return strings.Contains(log, text) })
}

// TestWorkerJoinsWithItsToken refuses a worker, lets it join, revokes its token and kills its process. It checks that
// nothing that its attempts stored is lost, that the run of a user waits for an operator, and that no token or secret is in
// what the processes print and store.
func TestWorkerJoinsWithItsToken(t *testing.T) {
	t.Parallel()
	s := startLocked(t, "--nodes", "0", "--approve-runs-of", "user", "--log-level", "debug")
	file := func(name string) string { return filepath.Join(s.dir, name) }
	s.token(t, file("operator"), "--name", "chief", "--role", "operator")
	s.token(t, file("user"), "--name", "ann", "--role", "user")
	s.token(t, file("other"), "--name", "other", "--role", "node", "--node", "other")
	id := s.token(t, file("box"), "--name", "box", "--role", "node", "--node", "box")
	env := []string{"TEMPORAL_ADDRESS=" + s.Temporal, "SWITCHYARD_GATEWAY=" + s.Gateway}
	spool := file("spool")
	worker := func(args ...string) *processes.Program {
		return startWith(t, env, append([]string{"worker", "--name", "box", "--spool-dir", spool, "--metrics-address", "127.0.0.1:0"}, args...)...)
	}
	for what, says := range map[string]string{"": "requires a token", "operator": "role operator", "other": "node other"} {
		args := []string(nil)
		if what != "" {
			args = []string{"--token-file", file(what)}
		}
		p := worker(args...)
		if code := p.Wait(); code != 4 || !strings.Contains(p.Stderr.String(), says) || !strings.Contains(p.Stderr.String(), "tokens create --role node --node box") {
			t.Errorf("with the token %q it exits with %d: %s", what, code, processes.Tail(p.Stderr.String()))
		}
	}

	workers := []*processes.Program{worker("--token-file", file("box"))}
	workers[0].Line(workers[0].Stdout, "Store")
	const secret = "hunter2-for-the-box"
	s.do(t, 0, "secrets", "set", "deploy", "--from-file", processes.WriteFile(t, "value", secret))
	submitted := s.Submit(t, fmt.Sprintf(`
name: tokens
tasks:
  make:
    type: shell
    spec:
      command: |
        for i in $(seq 500); do echo "line $i of the log"; done
        awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 300000; i++) printf "x"; printf "\"}" }' > "$SWITCHYARD_OUTPUT"
  each:
    type: shell
    parallel: 6
    batch: 3
    spec: { command: 'echo "instance $SWITCHYARD_INDEX"' }
  deploy:
    type: shell
    secretEnv: { TOKEN: "store:deploy" }
    spec: { command: 'echo "it is $TOKEN, ${#TOKEN} characters"' }
  missing:
    type: shell
    secretEnv: { TOKEN: "store:deplyo" }
    continueOnError: true
    spec: { command: 'true' }
  use:
    type: shell
    dependsOn: [make, each]
    condition: size(parent.make.output.text) == 300000
    spec: { command: 'grep -c xxxxx "$SWITCHYARD_INPUT"' }
  hold:
    type: shell
    dependsOn: [use]
    spec:
      command: |
        echo before; touch %[1]s/held
        awk 'BEGIN { for (i = 0; i < 20000; i++) printf "c" }' > "$SWITCHYARD_CHECKPOINT"
        while ! test -e %[1]s/revoked; do sleep 0.05; done
        echo meanwhile; touch %[1]s/meanwhile
        while ! test -e %[1]s/gate; do sleep 0.05; done
        echo after
`, s.dir))
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(file(name)); return err == nil }
	}
	processes.Await(t, "the last task runs", there("held"))
	s.awaitLogText(t, submitted, "hold", "before\n")
	s.runOfUserWaits(t, file("user"), file("operator"))

	// Output printed while the token is revoked waits in the spool for the next token.
	s.do(t, 0, "tokens", "revoke", id)
	processes.Await(t, "the token counts no longer", func() bool {
		code, _, _ := run(t, "whoami", "--gateway", s.Gateway, "--token-file", file("box"))
		return code == 4
	})
	open(t, s.dir, "revoked")
	workers[0].Line(workers[0].Stderr, "the store is away")
	processes.Await(t, "the task continues without a token", there("meanwhile"))
	processes.Await(t, "what it prints is in the spool", func() bool {
		files, _ := filepath.Glob(filepath.Join(spool, "[0-9a-f]*"))
		return len(files) > 0
	})
	s.token(t, file("box"), "--name", "box", "--role", "node", "--node", "box")
	s.awaitLogText(t, submitted, "hold", "meanwhile\n")

	// The attempt outlives its worker, and the node's next worker delivers its results.
	workers[0].Signal(syscall.SIGKILL)
	workers[0].Wait()
	workers = append(workers, worker("--token-file", file("box")))
	metrics := workers[1].Field("Metrics")
	open(t, s.dir, "gate")
	s.do(t, 0, "runs", "watch", submitted)
	s.awaitLogText(t, submitted, "hold", "after\n")
	s.awaitLog(t, submitted, "each", "has a line of each instance", func(log string) bool { return strings.Count(log, "instance ") == 6 })
	s.awaitLog(t, submitted, "make", "has 500 lines", func(log string) bool { return strings.Count(log, "of the log") == 500 })
	masked := fmt.Sprintf("it is ***, %d characters\n", len(secret))
	s.awaitLog(t, submitted, "deploy", "hides the secret", func(log string) bool { return log == masked })
	if stdout, _ := s.do(t, 0, "runs", "get", submitted, "missing"); !strings.Contains(stdout, "bad_spec") || !strings.Contains(stdout, "did you mean deploy?") {
		t.Errorf("the task without its secret: %s", stdout)
	}
	for url, want := range map[string]string{s.Gateway + "/metrics": `switchyard_node_heartbeat_age_seconds{node="box"} `, metrics: "temporal_request_total{"} {
		if got := string(processes.Request(t, http.MethodGet, url, "", s.Token, "")); !strings.Contains(got, want) {
			t.Errorf("%s has no %s:\n%s", url, want, processes.Tail(got))
		}
	}

	s.Signal(syscall.SIGINT)
	s.Wait()
	found := newLeaks(t, secret)
	for _, name := range []string{"operator", "user", "other", "box"} {
		text, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		found.forms["the token of "+name] = string(text[bytes.LastIndexByte(text, '_')+1 : len(text)-1])
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	found.searchFolder(s.dir, "")
	for _, p := range append(workers, s.Program) {
		said := p.Stdout.String() + p.Stderr.String()
		found.search("the output of "+p.Cmd.Args[1], said)
		if p != s.Program && strings.Contains(said, "permission_denied") || strings.Contains(said, "is dropped") {
			t.Errorf("a value was refused:\n%s", processes.Tail(said))
		}
	}
}

// runOfUserWaits submits a run as a user and approves it as an operator. Its task sees no token of the worker.
func (s *lockedStack) runOfUserWaits(t *testing.T, user, operator string) {
	t.Helper()
	as := func(file string, want int, args ...string) string {
		stdout, _ := do(t, s.Gateway, want, append(args, "--token-file", file)...)
		return strings.TrimSpace(stdout)
	}
	id := as(user, 0, "submit", write(t, "name: gated\ntasks: { build: { type: shell, spec: { command: env } } }\n"))
	s.AwaitRun(t, id, "pending_approval")
	as(user, 4, "runs", "approve", id)
	as(operator, 0, "runs", "approve", id)
	s.AwaitRun(t, id, "completed")
	s.awaitLogText(t, id, "build", "SWITCHYARD_RUN_ID="+id)
	if log := as(user, 0, "runs", "logs", id); strings.Contains(log, "SWITCHYARD_TOKEN") {
		t.Errorf("the task sees a token:\n%s", log)
	}
}
